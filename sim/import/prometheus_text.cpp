#include "sim/import/prometheus_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

struct Sample {
  std::string name;                           // without "vllm:" and "_total"
  std::map<std::string, std::string> labels;  // all
  double value = 0.0;
};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

Error malformed(const std::string& where, const std::string& what) {
  return input_error(where, what + "; expected NAME{LABEL=\"...\",...} NUMBER");
}

// name{label="value",...} number [timestamp]; values escape \\, \" and \n.
Sample parse_sample(const std::string& line, const std::string& where) {
  Sample sample;
  std::size_t at = 0;
  const auto skip_blanks = [&] {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
  };
  skip_blanks();
  while (at < line.size() && is_name(line[at])) sample.name += line[at++];
  skip_blanks();
  if (at < line.size() && line[at] == '{') {
    ++at;
    for (;;) {
      skip_blanks();
      if (at < line.size() && line[at] == ',') {
        ++at;
        continue;
      }
      if (at < line.size() && line[at] == '}') break;
      std::string label;
      while (at < line.size() && is_name(line[at])) label += line[at++];
      skip_blanks();
      if (label.empty() || at + 1 >= line.size() || line[at] != '=') throw malformed(where, "has malformed labels");
      ++at;
      skip_blanks();
      if (at >= line.size() || line[at] != '"') throw malformed(where, "has a label without quotes");
      std::string value;
      for (++at; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) {
          ++at;
          value += line[at] == 'n' ? '\n' : line[at];
        } else {
          value += line[at];
        }
      }
      if (at >= line.size()) throw malformed(where, "has a label that does not end");
      ++at;
      sample.labels[label] = value;
    }
    ++at;
  }
  skip_blanks();
  if (at < line.size() && line[at] == '+') ++at;
  const char* const first = line.data() + at;
  const char* const last = line.data() + line.size();
  const auto [end, error] = std::from_chars(first, last, sample.value);
  if (sample.name.empty() || error != std::errc{} || (end != last && *end != ' ' && *end != '\t'))
    throw malformed(where, "the value is " + in_quotes(line.substr(std::min(at, line.size()))));
  return sample;
}

// The name without the prefix of the engine and the suffix of counters; empty for names of others.
std::string short_name(std::string_view name) {
  for (const std::string_view prefix : {"vllm:", "vllm_"})
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      if (name.ends_with("_total")) name.remove_suffix(6);
      return std::string(name);
    }
  if (name.starts_with("sglang:") || name.starts_with("sglang_")) return "sglang:" + std::string(name.substr(7));
  return "";
}

// Was the name's line one of ours? Others are skipped unread: an exporter may write them as it likes.
bool concerns_us(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.starts_with("vllm:") || line.starts_with("vllm_") || line.starts_with("sglang:") ||
         line.starts_with("sglang_");
}

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
constexpr std::string_view kGenerated = "generation_tokens";
constexpr std::string_view kFirstTokens = "time_to_first_token_seconds_count";
constexpr std::string_view kPrompts = "prompt_tokens";
constexpr std::string_view kGapSeconds = "inter_token_latency_seconds_sum";
constexpr std::string_view kGaps = "inter_token_latency_seconds_count";
constexpr std::string_view kIterations = "iteration_tokens_total_count";
constexpr std::string_view kSglangLength = "sglang:spec_accept_length";
constexpr std::string_view kSglangRunning = "sglang:num_running_reqs";

constexpr double kCountMax = 0x1p53;     // above, a double does not hold every whole number
constexpr double kDraftLenMax = 1024.0;  // as of positions

class Totals {
 public:
  void add(const Sample& sample, const std::string& name, const std::string& where) {
    std::string series = name;
    for (const auto& [label, value] : sample.labels) series += '\x1f' + label + '=' + value;
    if (!(sample.value >= 0.0 && sample.value <= kCountMax))
      throw input_error(where, sample.name + " is " + number("%.6g", sample.value) + "; expected a count up to 2^53");
    Series& found = series_[series];
    found.name = name;
    if (name == kPerPosition) {
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
  std::vector<double> by_position() const {
    std::vector<double> counts;
    for (const auto& [key, series] : series_) {
      if (series.name != kPerPosition) continue;
      if (series.position >= counts.size()) counts.resize(series.position + 1);
      counts[series.position] += series.counter.total();
    }
    return counts;
  }
  bool has(std::string_view name) const {
    return std::ranges::any_of(series_, [&](const auto& entry) { return entry.second.name == name; });
  }
  // Of each series of a gauge, with what another gauge of the same labels says.
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

AcceptanceData from_gauges(const Totals& totals, const std::string& name) {
  AcceptanceData data;
  data.format = "Prometheus text (SGLang)";
  std::vector<AcceptanceWindow> windows, idle;
  for (const auto& [length, running] : totals.gauges(kSglangLength, kSglangRunning)) {
    if (length < 1.0) continue;  // a rank that has not drafted yet
    if (running == 0.0)
      idle.push_back({name, {}, {}, length});
    else
      windows.push_back({name, running ? WindowSize(Weight(*running)) : WindowSize(), {}, length});
  }
  if (windows.empty()) windows = std::move(idle);
  if (windows.empty()) throw input_error(name, "spec_accept_length is 0: nothing was drafted yet");
  merge_windows(windows, name, data);
  return data;
}

// num_accepted of vLLM before 0.9 counts drafts behind a rejected one: there, emitted tokens say the acceptance length,
// if the number of drafts is known.
AcceptanceData from_counters(const Totals& totals, const std::string& name) {
  AcceptanceData data;
  data.format = "Prometheus text";
  const auto drafts = totals.sum(kDrafts, name);
  const auto drafted = totals.sum(kDraftTokens, name);
  const auto accepted = totals.sum(kAccepted, name);
  if (!drafts)
    throw input_error(name, totals.sum(kEmitted, name)
                                ? "has counters of vLLM before 0.9, which do not count drafts; expected "
                                  "vllm:spec_decode_num_drafts_total"
                                : "has no vllm:spec_decode_num_drafts_total; expected the counters of a "
                                  "server that speculates");
  if (*drafts == 0.0) throw input_error(name, "vllm:spec_decode_num_drafts_total is 0: nothing was drafted yet");
  AcceptanceWindow window{name, Steps(std::llround(*drafts)), {}, std::nullopt};
  for (const double count : totals.by_position()) window.survival.push_back(count / *drafts);
  double sum = 0.0;
  for (const double s : window.survival) sum += s;
  require_survival(window.survival, name + ", accepted tokens per position over drafts", 1e-9);
  if (accepted) window.acceptance_length = 1.0 + *accepted / *drafts;
  if (accepted && drafted && *accepted > *drafted)
    throw input_error(name, "more tokens are accepted than drafted; expected at most as many");
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
  // Without positions: drafts all have K tokens.
  if (data.draft_len == 0 && drafted) data.draft_len = static_cast<std::int32_t>(std::ceil(*drafted / *drafts - 1e-9));
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
  return ThroughputWindow{running, decoded / engine_seconds, totals.sum(kPrompts, name).value_or(0.0) / engine_seconds};
}

// The counters of a model, and its name.
std::pair<std::string, Totals> totals_of(std::string_view text, const std::string& name, const std::string& model) {
  struct Model {
    Totals totals;
    bool speculates = false;
  };
  std::map<std::string, Model> by_model;
  std::vector<std::string> with_speculation;  // in the order of the file
  TextLines lines(text, name);
  while (lines.next()) {
    if (!concerns_us(lines.line())) continue;
    std::string_view line_name = lines.line();
    line_name.remove_prefix(line_name.find_first_not_of(" \t"));
    line_name = line_name.substr(0, line_name.find_first_of("{ \t"));
    const std::string known = short_name(line_name);
    const bool speculates = known.starts_with("spec_decode_num") || known == kSglangLength;
    constexpr std::array kOthers{kGenerated, kFirstTokens, kPrompts, kGapSeconds, kGaps, kIterations, kSglangRunning};
    if (!speculates && std::ranges::find(kOthers, known) == kOthers.end()) continue;
    if (known.ends_with("_created")) continue;  // when a counter began, not what it counted
    const Sample sample = parse_sample(lines.line(), lines.where());
    const auto label = sample.labels.find("model_name");
    const std::string of_model = label == sample.labels.end() ? "" : label->second;
    Model& found = by_model[of_model];
    if (speculates && !found.speculates) with_speculation.push_back(of_model);
    found.speculates |= speculates;
    found.totals.add(sample, known, lines.where());
  }
  if (with_speculation.empty())
    throw input_error(name, "has no counters of speculation; expected vllm:spec_decode_num_drafts_total and the like");
  std::string chosen = model;
  if (model.empty()) {
    if (with_speculation.size() > 1) {
      constexpr std::size_t kNamesShown = 4;
      std::string names =
          joined(std::span(with_speculation).first(std::min(kNamesShown, with_speculation.size())), ", ", in_quotes);
      if (with_speculation.size() > kNamesShown)
        names += " and " + std::to_string(with_speculation.size() - kNamesShown) + " more";
      throw input_error(name, "has counters of several models (" + names + "); expected one, chosen by its model_name");
    }
    chosen = with_speculation.front();
  } else if (const auto found = by_model.find(model); found == by_model.end() || !found->second.speculates) {
    throw input_error(name, "has no counters of speculation with model_name " + in_quotes(model) +
                                "; expected one of " + in_quotes(with_speculation.front()) +
                                (with_speculation.size() > 1 ? ", ..." : ""));
  }
  return {chosen, std::move(by_model[chosen].totals)};
}

}  // namespace

bool is_prometheus_text(std::string_view text) {
  TextLines lines(text, "");
  while (lines.next())
    if (concerns_us(lines.line()) && (has_words(lines.line(), "spec_decode") || has_words(lines.line(), "spec_accept")))
      return true;
  return false;
}

AcceptanceData read_prometheus_text(std::string_view text, const std::string& name, const std::string& model) {
  const Totals totals = totals_of(text, name, model).second;
  return totals.has(kSglangLength) ? from_gauges(totals, name) : from_counters(totals, name);
}

AcceptanceData read_prometheus_difference(std::string_view before, const std::string& before_name,
                                          std::string_view after, const std::string& after_name,
                                          const std::string& model) {
  auto [of, totals] = totals_of(after, after_name, model);
  const std::string name = before_name + ".." + after_name;
  if (totals.has(kSglangLength))
    throw input_error(name,
                      "SGLang's acceptance length is a gauge, which has no difference; expected one dump, or vLLM's");
  totals.subtract(totals_of(before, before_name, of).second, name);
  AcceptanceData data = from_counters(totals, name);
  data.notes.push_back("The counters are those of the time between the two dumps.");
  if (const auto throughput = throughput_of(totals, name)) data.throughput.push_back(*throughput);
  return data;
}

}  // namespace draftproof
