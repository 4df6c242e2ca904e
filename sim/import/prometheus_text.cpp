#include "sim/import/prometheus_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/import/prometheus_samples.hpp"

namespace draftproof {
namespace {

// A counter over dumps, resets included.
struct Counter {
  double before_resets = 0.0;
  double latest = 0.0;
  void add(double value) {
    if (value < latest) before_resets += latest;
    latest = value;
  }
  double total() const { return before_resets + latest; }
};

constexpr std::string_view kDrafts = "spec_decode_num_drafts";
constexpr std::string_view kDraftTokens = "spec_decode_num_draft_tokens";
constexpr std::string_view kAccepted = "spec_decode_num_accepted_tokens";
constexpr std::string_view kPerPosition = "spec_decode_num_accepted_tokens_per_pos";
constexpr std::string_view kEmitted = "spec_decode_num_emitted_tokens";
constexpr std::string_view kLength = "spec_accept_length";  // a gauge
constexpr std::string_view kGenerated = "generation_tokens";
constexpr std::string_view kFirstTokens = "time_to_first_token_seconds_count";
constexpr std::string_view kPrompts = "prompt_tokens";
constexpr std::string_view kGapSeconds = "inter_token_latency_seconds_sum";
constexpr std::string_view kGaps = "inter_token_latency_seconds_count";
constexpr std::string_view kIterations = "iteration_tokens_total_count";
constexpr std::string_view kRunning = "num_running_reqs";
constexpr std::string_view kRateSums = "spec_decode_acceptance_rate_per_position_sum";  // MAX's histograms, per cent
constexpr std::string_view kRateCounts = "spec_decode_acceptance_rate_per_position_count";
constexpr std::string_view kDecodes = "n_decode";  // llama.cpp's, those of prompts included

// A metric, whatever engine counts it: the name behind the engine's prefix ("vllm:", "ray_vllm_", "lmdeploy:", ...) and
// before the suffix of counters, "_total".
struct Metric {
  std::string_view engine, name;
  bool speculates = false;
};

struct KnownMetric {
  std::string_view name;
  std::string_view as = {};  // the name that others give it
  bool speculates = false;
};

constexpr KnownMetric kMetrics[] = {
    {kDrafts, kDrafts, true},
    {kDraftTokens, kDraftTokens, true},
    {kAccepted, kAccepted, true},
    {kPerPosition, kPerPosition, true},
    {kEmitted, kEmitted, true},
    {kLength, kLength, true},                          // SGLang
    {"spec_decode_acceptance_length", kLength, true},  // TensorRT-LLM
    {kRateSums, kRateSums, true},
    {kRateCounts, kRateCounts, true},
    {"n_draft", kDraftTokens, true},  // llama.cpp and its descendants
    {"n_drafted", kDraftTokens, true},
    {"n_draft_accepted", kAccepted, true},
    {"n_drafted_accepted", kAccepted, true},
    {"tokens_predicted", kGenerated},
    {kDecodes, kDecodes},
    {kGenerated, kGenerated},
    {kFirstTokens, kFirstTokens},
    {kPrompts, kPrompts},
    {kGapSeconds, kGapSeconds},
    {kGaps, kGaps},
    {kIterations, kIterations},
    {kRunning, kRunning},
};

std::optional<Metric> metric_of(std::string_view name) {
  constexpr std::string_view kCounter = "_total";
  if (name.ends_with(kCounter)) name.remove_suffix(kCounter.size());
  for (const KnownMetric& known : kMetrics) {
    if (!name.ends_with(known.name) || name.size() == known.name.size()) continue;
    const std::string_view engine = name.substr(0, name.size() - known.name.size());
    // An underscore ends an engine's name only where the rest says what it is: not in "sglang:request_prompt_tokens".
    if (engine.back() == ':' || (engine.back() == '_' && engine.find(':') == std::string_view::npos))
      return Metric{engine.substr(0, engine.size() - 1), known.as, known.speculates};
  }
  return std::nullopt;
}

// As a user knows it, from a metric's prefix.
std::string engine_name(std::string_view engine) {
  if (engine.starts_with("ray_")) engine.remove_prefix(4);
  for (const auto& [prefix, name] : {std::pair{"vllm", "vLLM"},
                                     {"sglang", "SGLang"},
                                     {"trtllm", "TensorRT-LLM"},
                                     {"llamacpp", "llama.cpp"},
                                     {"lmdeploy", "LMDeploy"},
                                     {"maxserve", "MAX"}})
    if (engine == prefix) return name;
  return std::string(engine);
}

constexpr double kCountMax = 0x1p53;     // above, a double does not hold every whole number
constexpr double kDraftLenMax = 1024.0;  // as of positions

class Totals {
 public:
  void add(const PrometheusSample& sample, std::string_view name, const std::string& where) {
    std::string series(name);
    for (const auto& [label, value] : sample.labels) series += '\x1f' + label + '=' + value;
    if (!(sample.value >= 0.0 && sample.value <= kCountMax))
      throw input_error(where, sample.name + " is " + number("%.6g", sample.value) + "; expected a count up to 2^53");
    Series& found = series_[series];
    found.name = name;
    if (name == kPerPosition || name == kRateSums || name == kRateCounts) {
      const auto position = sample.labels.find("position");
      const auto number = position == sample.labels.end() ? std::nullopt : read_integer(position->second, 0, 1023);
      if (!number)
        throw input_error(where,
                          sample.name +
                              (position == sample.labels.end() ? " has no label position"
                                                               : " has position " + in_quotes(position->second)) +
                              "; expected a whole number from 0");
      found.position = static_cast<std::size_t>(*number);
    }
    found.counter.add(sample.value);
  }

  // Takes away what the counters had reached before. Errors (input) at `where`, naming one that is not there any more,
  // or is lower.
  void subtract(const Totals& before, const std::string& where) {
    for (const auto& [key, series] : before.series_) {
      if (series.name == kLength || series.name == kRunning) continue;  // gauges
      const auto found = series_.find(key);
      const double was = series.counter.total();
      if (found == series_.end() || found->second.counter.total() < was)
        throw input_error(where, series.name + (found == series_.end() ? " is gone" : " falls") +
                                     " between the two; expected counters of one server that was not started anew");
      found->second.counter = {0.0, found->second.counter.total() - was};
    }
  }

  // Error (input) at `where`: more than a double counts.
  std::optional<double> sum(std::string_view name, const std::string& where) const {
    std::optional<double> sum;
    for (const auto& [key, series] : series_)
      if (series.name == name) sum = sum.value_or(0.0) + series.counter.total();
    if (sum > kCountMax)
      throw input_error(where, std::string(name) + " adds up to " + number("%.6g", *sum) + "; expected at most 2^53");
    return sum;
  }
  std::vector<double> by_position(std::string_view name = kPerPosition) const {
    std::vector<double> counts;
    for (const auto& [key, series] : series_) {
      if (series.name != name) continue;
      if (series.position >= counts.size()) counts.resize(series.position + 1);
      counts[series.position] += series.counter.total();
    }
    return counts;
  }
  bool has(std::string_view name) const {
    return std::ranges::any_of(series_, [&](const auto& entry) { return entry.second.name == name; });
  }
  // Each series of a gauge, with the value of another gauge of the same labels.
  std::vector<std::pair<double, std::optional<double>>> gauges(std::string_view name, std::string_view other) const {
    std::vector<std::pair<double, std::optional<double>>> values;
    for (const auto& [key, series] : series_) {
      if (series.name != name) continue;
      const auto beside = series_.find(std::string(other) + key.substr(name.size()));
      values.emplace_back(series.counter.latest,
                          beside == series_.end() ? std::nullopt : std::optional(beside->second.counter.latest));
    }
    return values;
  }

 private:
  struct Series {
    std::string name;
    std::size_t position = 0;
    Counter counter;
  };
  std::map<std::string, Series> series_;
};

void require_possible(double drafted, double accepted, const std::string& name) {
  if (accepted > drafted) throw input_error(name, "more tokens are accepted than drafted; expected at most as many");
}

// A gauge of the mean length: SGLang's is of the last interval, TensorRT-LLM's of the last iteration, beside counters.
AcceptanceData from_gauges(const Totals& totals, const std::string& name) {
  AcceptanceData data;
  std::vector<AcceptanceWindow> windows, idle;
  for (const auto& [length, running] : totals.gauges(kLength, kRunning)) {
    if (length < 1.0) continue;  // a rank that has not drafted yet
    if (running == 0.0)
      idle.push_back({name, {}, {}, length});
    else
      windows.push_back({name, running ? WindowSize(Weight(*running)) : WindowSize(), {}, length});
  }
  if (windows.empty()) windows = std::move(idle);
  if (windows.empty()) throw input_error(name, "the gauge of the acceptance length is 0: nothing was drafted yet");
  merge_windows(windows, name, data);
  const auto drafted = totals.sum(kDraftTokens, name), accepted = totals.sum(kAccepted, name);
  if (!drafted || !accepted || *drafted <= 0.0) return data;
  require_possible(*drafted, *accepted, name);
  data.draft_tokens = std::llround(*drafted);
  data.accepted_tokens = std::llround(*accepted);
  data.notes.emplace_back(
      "The acceptance length is a gauge of the newest iteration; the counters are since the start.");
  // Drafts that all have K tokens: K = (length - 1) / (accepted / drafted).
  const double k = *accepted > 0.0 ? (data.acceptance_length - 1.0) * *drafted / *accepted : 0.0;
  constexpr double kNearlyWhole = 0.05;
  if (k >= 1.0 && k <= kAcceptanceDepthMax && std::abs(k - std::round(k)) < kNearlyWhole)
    data.draft_len = static_cast<std::int32_t>(std::lround(k));
  return data;
}

// A histogram for each position of the rates of batches, over all their drafts: each batch counts once.
AcceptanceData from_rates(const Totals& totals, const std::string& name) {
  const std::vector<double> sums = totals.by_position(kRateSums), counts = totals.by_position(kRateCounts);
  AcceptanceWindow window;
  window.where = name;
  for (std::size_t i = 0; i < std::min(sums.size(), counts.size()) && counts[i] > 0.0; ++i)
    window.survival.push_back(sums[i] / (100.0 * counts[i]));
  if (window.survival.empty()) throw input_error(name, "no batch verified a draft yet; expected a server that drafted");
  require_survival(window.survival, name + ", acceptance rates per position", 1e-6);
  AcceptanceData data;
  merge_windows({window}, name, data);
  data.notes.emplace_back("The rates are means over batches, whatever their size.");
  return data;
}

// llama.cpp before it counted drafts: every step yields a token more than it accepts, and the first token of each of an
// unknown number of requests is a prompt's.
AcceptanceData from_tokens(const Totals& totals, const std::string& name) {
  const double drafted = totals.sum(kDraftTokens, name).value_or(0.0);
  const double accepted = totals.sum(kAccepted, name).value_or(0.0);
  const auto generated = totals.sum(kGenerated, name), decodes = totals.sum(kDecodes, name);
  require_possible(drafted, accepted, name);
  if (drafted <= 0.0) throw input_error(name, "no token was drafted yet; expected counters of a server that drafted");
  const double steps = generated ? *generated - accepted : decodes.value_or(0.0);
  if (steps < 1.0)
    throw input_error(
        name,
        "counts accepted drafts, and neither drafts nor generated tokens; expected one of them beside, or "
        "the server's log");
  AcceptanceData data;
  merge_windows({{name, {}, {}, 1.0 + accepted / steps}}, name, data);
  data.draft_tokens = std::llround(drafted);
  data.accepted_tokens = std::llround(accepted);
  data.length_is_least = true;
  set_least_draft_len(data, drafted, steps);
  data.draft_len_is_least = true;
  data.notes.push_back(number("%.0f", accepted) + " of " + number("%.0f", drafted) +
                       " drafts were accepted. How many steps drafted is not counted" +
                       (decodes ? ": of the " + number("%.0f", *decodes) + " decodes some are of prompts" : "") +
                       ". They are at most " + number("%.0f", steps) + ", so the acceptance length is at least " +
                       number("%.2f", data.acceptance_length) +
                       "; the server's log says it (\"mean acceptance length\").");
  return data;
}

// num_accepted of vLLM before 0.9 counts drafts behind a rejected one: there, emitted tokens say the acceptance length,
// if the number of drafts is known.
AcceptanceData from_counters(const Totals& totals, const std::string& name) {
  AcceptanceData data;
  const auto drafts = totals.sum(kDrafts, name);
  const auto drafted = totals.sum(kDraftTokens, name);
  const auto accepted = totals.sum(kAccepted, name);
  if (!drafts)
    throw input_error(name,
                      "has counters of vLLM before 0.9, which do not count drafts; expected "
                      "vllm:spec_decode_num_drafts_total");
  if (*drafts == 0.0) throw input_error(name, "spec_decode_num_drafts_total is 0: nothing was drafted yet");
  AcceptanceWindow window{name, Steps(std::llround(*drafts)), {}, std::nullopt};
  for (const double count : totals.by_position()) window.survival.push_back(count / *drafts);
  double sum = 0.0;
  for (const double s : window.survival) sum += s;
  require_survival(window.survival, name + ", accepted tokens per position over drafts", 1e-9);
  if (accepted) window.acceptance_length = 1.0 + *accepted / *drafts;
  if (accepted && drafted) require_possible(*drafted, *accepted, name);
  if (accepted && !window.survival.empty() && std::abs(sum * *drafts - *accepted) > 0.001 * *accepted + 1.0)
    throw input_error(name, "the accepted tokens of all positions are " + std::to_string(std::llround(sum * *drafts)) +
                                ", and num_accepted_tokens is " + std::to_string(std::llround(*accepted)) +
                                "; expected the same");
  if (drafted && !window.survival.empty()) window.reach = reach_of(*drafts, *drafted, window.survival);
  merge_windows({window}, name, data);
  if (drafted) data.draft_tokens = std::llround(*drafted);
  if (accepted) data.accepted_tokens = std::llround(*accepted);
  if (drafted && *drafted / *drafts > kDraftLenMax)
    throw input_error(name, "a draft has " + number("%.6g", *drafted / *drafts) +
                                " tokens on average; expected at most " + number("%g", kDraftLenMax));
  if (data.draft_len == 0 && drafted) set_least_draft_len(data, *drafted, *drafts);
  const auto generated = totals.sum(kGenerated, name);
  if (generated && accepted) {
    // Steps that emitted, without those that ended prompts.
    const double steps = *generated - *accepted - totals.sum(kFirstTokens, name).value_or(0.0);
    if (steps > 0.0 && *drafts < 0.95 * steps) {
      data.draft_share = *drafts / steps;
      data.notes.push_back("Only " + std::to_string(std::lround(100.0 * *drafts / steps)) +
                           " % of the steps had a draft; the acceptance length is of those.");
    }
  }
  return data;
}

// Load and rate of an engine by vLLM's histograms: every request that decodes waits for each step, so the gaps between
// its outputs are the steps, as many a step as requests ran.
std::optional<ThroughputWindow> throughput_of(const Totals& totals, const std::string& name) {
  const auto seconds = totals.sum(kGapSeconds, name), gaps = totals.sum(kGaps, name);
  const auto steps = totals.sum(kIterations, name), generated = totals.sum(kGenerated, name);
  if (!seconds || !gaps || !steps || !generated || *seconds <= 0.0 || *gaps <= 0.0 || *steps <= 0.0)
    return std::nullopt;
  const double decoded = *generated - totals.sum(kFirstTokens, name).value_or(0.0);
  const double running = std::max(1.0, *gaps / *steps);
  const double engine_seconds = *seconds * *steps / *gaps;
  if (decoded <= 0.0) return std::nullopt;
  require_running(running, name);
  return ThroughputWindow{running, decoded / engine_seconds, totals.sum(kPrompts, name).value_or(0.0) / engine_seconds};
}

struct Model {
  std::string engine, name;
  std::string label;  // model_name
  Totals totals;
  bool speculates = false;
};

// The counters of a model of an engine.
Model model_of(std::string_view text, const std::string& name, const std::string& model) {
  std::map<std::pair<std::string, std::string>, Model> models;  // by engine and model_name
  std::vector<Model*> with_speculation;                         // in the order of the file
  const auto wanted = [](std::string_view metric) { return metric_of(metric).has_value(); };
  for_each_sample(text, name, wanted, [&](const PrometheusSample& sample, const std::string& where) {
    const Metric metric = *metric_of(sample.name);
    const auto label = sample.labels.find("model_name");
    const std::string of_model = label == sample.labels.end() ? "" : label->second;
    Model& found = models[{std::string(metric.engine), of_model}];
    if (metric.speculates && !found.speculates) with_speculation.push_back(&found);
    found.speculates |= metric.speculates;
    found.engine = metric.engine;
    found.name = found.label = of_model;
    found.totals.add(sample, metric.name, where);
  });
  if (with_speculation.empty())
    throw input_error(name, "has no counters of speculation; expected vllm:spec_decode_num_drafts_total and the like");
  const bool engines = std::ranges::any_of(
      with_speculation, [&](const Model* other) { return other->engine != with_speculation.front()->engine; });
  std::vector<std::string> names;
  for (const Model* const of : with_speculation) names.push_back(engines ? of->engine + ":" + of->name : of->name);
  std::size_t chosen = 0;
  if (model.empty() && names.size() > 1) {
    throw input_error(
        name, "has counters of several models (" + first_names(names) + "); expected one, chosen by its model_name");
  }
  if (!model.empty()) {
    chosen = static_cast<std::size_t>(std::ranges::find(names, model) - names.begin());
    if (chosen == names.size())
      throw input_error(name, "has no counters of speculation with model_name " + in_quotes(model) +
                                  "; expected one of " + first_names(names));
  }
  Model found = std::move(*with_speculation[chosen]);
  found.name = names[chosen];
  return found;
}

AcceptanceData data_of(const Model& model, const std::string& name) {
  const Totals& totals = model.totals;
  AcceptanceData data = totals.has(kDrafts) || totals.has(kEmitted) ? from_counters(totals, name)
                        : totals.has(kLength)                       ? from_gauges(totals, name)
                        : totals.has(kRateSums)                     ? from_rates(totals, name)
                                                                    : from_tokens(totals, name);
  data.format = "Prometheus text (" + engine_name(model.engine) + ")";
  data.model = model.label;
  return data;
}

}  // namespace

bool is_prometheus_text(std::string_view text) {
  if (is_prometheus_api(text)) return true;
  bool speculates = false;
  const auto look = [&](std::string_view name) {
    const auto metric = metric_of(name);
    speculates |= metric && metric->speculates;
    return false;
  };
  for_each_sample(text, "", look, [](const PrometheusSample&, const std::string&) {});
  return speculates;
}

AcceptanceData read_prometheus_text(std::string_view text, const std::string& name, const std::string& model) {
  return data_of(model_of(text, name, model), name);
}

AcceptanceData read_prometheus_difference(std::string_view before, const std::string& before_name,
                                          std::string_view after, const std::string& after_name,
                                          const std::string& model) {
  Model newer = model_of(after, after_name, model);
  const std::string name = before_name + ".." + after_name;
  if (!newer.totals.has(kDrafts) && newer.totals.has(kLength))
    throw input_error(name,
                      engine_name(newer.engine) +
                          "'s acceptance length is a gauge, which has no difference; expected one dump, or vLLM's");
  newer.totals.subtract(model_of(before, before_name, newer.name).totals, name);
  AcceptanceData data = data_of(newer, name);
  data.notes.push_back("The counters are those of the time between the two dumps.");
  if (const auto throughput = throughput_of(newer.totals, name)) data.throughput.push_back(*throughput);
  return data;
}

}  // namespace draftproof
