#include "sim/import/json_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/import/json_documents.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kStepsMax = 1'000'000'000'000;

// The numbers of a list, up to the first null: nothing is known behind it.
std::vector<double> numbers_of(const Json& object, const char* key, const std::string& name) {
  std::vector<double> numbers;
  const Json* const found = json_field(object, key);
  if (found == nullptr || !found->is_array()) return numbers;
  for (const Json& value : *found) {
    if (value.is_null()) break;
    if (!value.is_number()) throw input_error(name, std::string(key) + " has " + value.dump() + "; expected numbers");
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

std::optional<std::int64_t> count_of(const Json& object, const char* key, const std::string& name) {
  const Json* const found = json_field(object, key);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  if (*found < -kStepsMax || *found > kStepsMax)
    throw input_error(name, std::string(key) + " is " + found->dump() + "; expected a count up to 1e12");
  return found->get<std::int64_t>();
}

// A number of at least `least`, where there is one.
std::optional<double> number_of(const Json& object, const char* key, double least, const std::string& name,
                                const char* why = "") {
  const Json* const found = json_field(object, key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number() || !(found->get<double>() >= least))
    throw input_error(
        name, std::string(key) + " is " + found->dump() + "; expected a number from " + number("%g", least) + why);
  return found->get<double>();
}

// Rates over all steps, those without a draft included: what a step gains.
AcceptanceData of_project(const Json& document, const std::string& name) {
  AcceptanceData data;
  data.format = "draftproof JSON";
  const Json& by_position = document["acceptance_by_position"];
  AcceptanceWindow window;
  window.where = name;
  window.size = counted(count_of(document, "steps", name));
  window.survival = numbers_of(by_position, "unconditional", name);
  require_survival(window.survival, name + ", acceptance_by_position.unconditional", 1e-9);
  if (window.survival.empty())
    throw input_error(name, "acceptance_by_position.unconditional is empty; expected the result of a run that drafted");
  merge_windows({window}, name, data);
  data.draft_tokens = count_of(document, "draft_tokens", name);
  data.accepted_tokens = count_of(document, "accepted", name);
  const std::vector<double> errors = numbers_of(by_position, "unconditional_standard_error", name);
  if (errors.size() == data.survival.size()) data.survival_error = errors;
  data.notes.push_back("The rates are over all steps, those without a draft included.");
  return data;
}

// Where an object stands, and of what configuration it is.
struct Place {
  std::string where, configuration;
};

// Steps by accepted drafts, of a list or of an object by number.
std::map<std::int32_t, std::int64_t> steps_of(const Json& histogram, const std::string& what) {
  std::map<std::int32_t, std::int64_t> steps;
  for (const auto& [key, value] : histogram.items()) {
    const auto accepted = read_integer(key, 0, kAcceptanceDepthMax);
    if (!accepted)
      throw input_error(what, "has an entry " + in_quotes(key) + "; expected accepted drafts from 0 to " +
                                  std::to_string(kAcceptanceDepthMax));
    if (!value.is_number_integer() || value < 0 || value > kStepsMax)
      throw input_error(what, "has " + value.dump() + "; expected counts of steps");
    steps[static_cast<std::int32_t>(*accepted)] = value.get<std::int64_t>();
  }
  return steps;
}

void add_histogram(const Json& of, const char* key, const std::string& name, JsonRuns& runs) {
  const std::map<std::int32_t, std::int64_t> steps = steps_of(of.at(key), name + ", " + key);
  const std::int32_t longest = steps.empty() ? 0 : steps.rbegin()->first;
  std::int64_t drafts = 0, accepted = 0;
  for (const auto& [length, count] : steps) {
    drafts += count;
    accepted += length * count;
  }
  for (const char* total : {"num_accepted_draft_tokens", "total_accepted_draft_tokens", "spec_num_correct_drafts"})
    if (const auto said = count_of(of, total, name); said && *said != accepted)
      throw input_error(name, std::string(key) + " has " + std::to_string(accepted) + " accepted drafts, and " + total +
                                  " is " + std::to_string(*said) + "; expected the same");
  std::int64_t known = count_of(of, "num_spec_tokens", name).value_or(0);
  if (const auto proposed = count_of(of, "spec_num_proposed_drafts", name); proposed && drafts > 0)
    known = std::max(known, (*proposed + drafts - 1) / drafts);
  runs.longest = std::max({runs.longest, static_cast<std::size_t>(longest),
                           static_cast<std::size_t>(std::clamp<std::int64_t>(known, 0, kAcceptanceDepthMax))});
  if (drafts == 0) return;
  AcceptanceWindow window{name, Steps(drafts), {}, 1.0 + static_cast<double>(accepted) / static_cast<double>(drafts)};
  std::int64_t reached = drafts;
  for (std::int32_t i = 0; i < longest; ++i) {
    if (const auto ended = steps.find(i); ended != steps.end()) reached -= ended->second;
    window.survival.push_back(static_cast<double>(reached) / static_cast<double>(drafts));
  }
  runs.histograms.push_back(std::move(window));
}

// The count under the first of `keys` that an object, its usage or its stats has.
std::optional<std::int64_t> answer_count(const Json& answer, std::span<const char* const> keys,
                                         const std::string& name) {
  for (const char* part : {"", "usage", "stats"}) {
    const Json* const of = *part == '\0' ? &answer : json_field(answer, part);
    if (of == nullptr) continue;
    for (const char* key : keys)
      if (const auto count = count_of(*of, key, name)) return count;
  }
  return std::nullopt;
}

// A request whose tokens and drafts are counted, and not its steps: the first token is the prompt's, and every step
// yields a token more than it accepts.
bool add_tokens(const Json& answer, const Place& place, JsonAcceptance& all) {
  const std::string& name = place.where;
  static constexpr const char* kAccepted[] = {"draft_n_accepted", "accepted_draft_tokens_count",
                                              "acceptedDraftTokensCount"};
  static constexpr const char* kDrafted[] = {"draft_n", "total_draft_tokens_count", "totalDraftTokensCount"};
  static constexpr const char* kTokens[] = {"predicted_n", "completion_tokens", "predicted_tokens_count",
                                            "predictedTokensCount"};
  const auto accepted = answer_count(answer, kAccepted, name);
  const auto drafted = answer_count(answer, kDrafted, name);
  const auto tokens = answer_count(answer, kTokens, name);
  static constexpr const char* kRounds[] = {"draft_rounds"};  // mlx-vlm's: steps with a draft
  const auto rounds = answer_count(answer, kRounds, name);
  if (!accepted || !drafted || !tokens) return false;
  const bool timings = count_of(answer, kTokens[0], name).has_value();
  // Where rounds are counted, drafts behind the end of the answer are counted, too.
  if (*accepted < 0 || *accepted > *drafted || *tokens > kStepsMax ||
      (!rounds && *accepted >= std::max<std::int64_t>(*tokens, 1)))
    throw input_error(name, std::string(timings ? kAccepted[0] : kAccepted[1]) + " is " + std::to_string(*accepted) +
                                "; expected at most the drafts, " + std::to_string(*drafted) +
                                ", and less than the tokens, " + std::to_string(*tokens));
  if (rounds && (*rounds < 0 || *rounds > *drafted))
    throw input_error(name, "draft_rounds is " + std::to_string(*rounds) + "; expected at most the drafts, " +
                                std::to_string(*drafted));
  const std::int64_t steps = rounds.value_or(std::max<std::int64_t>(*tokens - 1 - *accepted, *accepted > 0 ? 1 : 0));
  if (steps == 0 || *drafted == 0) return true;
  all.formats.insert(timings ? "llama.cpp JSON" : "LM Studio JSON");
  JsonRuns& runs = all.runs[place.configuration];
  runs.windows.push_back({name, Steps(steps), {}, 1.0 + static_cast<double>(*accepted) / static_cast<double>(steps)});
  runs.draft_tokens += *drafted;
  runs.accepted_tokens += *accepted;
  all.of_all_steps |= !rounds;
  return true;
}

// The window of one TensorRT-LLM request: a decoding step an iteration from the first token to the last.
AcceptanceWindow of_iterations(const Json& request, const std::string& name) {
  const std::int64_t steps =
      count_of(request, "last_iter", name).value() - count_of(request, "first_iter", name).value();
  const Json& speculation = request.at("speculative_decoding");
  const std::int64_t accepted = count_of(speculation, "total_accepted_draft_tokens", name).value_or(-1);
  if (accepted < 0 || accepted > count_of(speculation, "total_draft_tokens", name).value_or(kStepsMax))
    throw input_error(name, "total_accepted_draft_tokens is no count up to total_draft_tokens; expected one");
  if (steps < 1 && accepted > 0)
    throw input_error(name, "last_iter is not after first_iter; expected the iterations in which the request ran");
  if (steps < 1) return {name, Steps(0), {}, 1.0};
  return {name, Steps(steps), {}, 1.0 + static_cast<double>(accepted) / static_cast<double>(steps)};
}

// One iteration of TensorRT-LLM's engine: all requests that generate take a step.
void add_iteration(const Json& iteration, const Json& speculation, const Place& place, JsonAcceptance& all) {
  const std::string& name = place.where;
  constexpr std::int64_t kCountMax = kStepsMax;
  const auto count = [&](const Json& of, const char* key) {
    const auto found = count_of(of, key, name);
    if (found && (*found < 0 || *found > kCountMax))
      throw input_error(name, std::string(key) + " is " + std::to_string(*found) + "; expected a count");
    return found;
  };
  const std::int64_t drafts = count(speculation, "numRequestsWithDraftTokens").value_or(0);
  const auto drafted = count(speculation, "numDraftTokens"), accepted = count(speculation, "numAcceptedTokens");
  if (drafts == 0 || !drafted || !accepted || *drafted == 0) return;  // a prefill, or nothing was drafted
  if (*accepted > *drafted)
    throw input_error(name, "numAcceptedTokens is " + std::to_string(*accepted) +
                                "; expected at most numDraftTokens, " + std::to_string(*drafted));
  const double length = 1.0 + static_cast<double>(*accepted) / static_cast<double>(drafts);
  all.formats.insert("TensorRT-LLM JSON");
  JsonRuns& runs = all.runs[place.configuration];
  runs.windows.push_back({name, Steps(drafts), {}, length});
  runs.draft_tokens += *drafted;
  runs.accepted_tokens += *accepted;
  const Json* const batch = json_field(iteration, "inflightBatchingStats");
  const auto ms = number_of(iteration, "iterLatencyMS", 0.0, name);
  const std::int64_t running = batch == nullptr ? 0 : count(*batch, "numGenRequests").value_or(0);
  if (!ms || *ms <= 0.0 || running == 0 || count(*batch, "numContextRequests").value_or(0) > 0) return;
  const auto requests = static_cast<double>(running);
  require_running(requests, name);
  all.throughput.push_back({requests, (requests + static_cast<double>(*accepted)) / (*ms * 1e-3), 0.0, 0, length,
                            static_cast<double>(*drafted) / static_cast<double>(drafts)});
}

// vLLM's bench serve.
void add_vllm_benchmark(const Json& run, const Place& place, JsonAcceptance& all) {
  const std::string& name = place.where;
  constexpr const char* kRates = "spec_decode_per_position_acceptance_rates";
  AcceptanceWindow window;
  window.where = name;
  window.survival = numbers_of(run, kRates, name);
  require_survival(window.survival, name + ", " + kRates, 1e-6);
  window.acceptance_length =
      number_of(run, "spec_decode_acceptance_length", 1.0, name, ", since the bonus token counts");
  const auto drafts = count_of(run, "spec_decode_num_drafts", name);
  const auto drafted = count_of(run, "spec_decode_draft_tokens", name),
             accepted = count_of(run, "spec_decode_accepted_tokens", name);
  if (drafts && *drafts <= 0) return;
  window.size = counted(drafts);
  std::string configuration = place.configuration;
  if (!window.survival.empty())
    configuration += (configuration.empty() ? "" : ", ") + counted_noun(std::ssize(window.survival), "draft");
  all.formats.insert("vLLM benchmark JSON");
  JsonRuns& runs = all.runs[configuration];
  if (drafts && drafted && accepted) {
    if (*accepted < 0 || *accepted > *drafted || *drafted > kStepsMax)
      throw input_error(name, "spec_decode_accepted_tokens is " + std::to_string(*accepted) +
                                  "; expected at most spec_decode_draft_tokens, " + std::to_string(*drafted));
    window.acceptance_length = 1.0 + static_cast<double>(*accepted) / static_cast<double>(*drafts);
    if (!window.survival.empty())
      window.reach = reach_of(static_cast<double>(*drafts), static_cast<double>(*drafted), window.survival);
    runs.draft_tokens += *drafted;
    runs.accepted_tokens += *accepted;
  }
  runs.windows.push_back(std::move(window));
}

struct KnownLength {
  const char* key;
  const char* format;
  std::vector<const char*> steps;    // counts beside it
  std::vector<const char*> weights;  // likewise
};

bool add_length(const Json& object, const Place& place, JsonAcceptance& all) {
  const std::string& name = place.where;
  static const KnownLength kKnown[] = {
      {"spec_accept_length", "SGLang JSON", {"spec_verify_ct"}, {}},
      {"avg_spec_accept_length", "SGLang JSON", {}, {}},
      {"accept_length", "SGLang benchmark JSON", {}, {"num_requests", "num_questions", "completed"}},
      {"acc_length", "SGLang benchmark JSON", {}, {"batch_size"}},
      {"avg_decoded_tokens_per_iter", "TensorRT-LLM JSON", {"num_spec_steps"}, {}}};
  for (const KnownLength& known : kKnown) {
    const Json* const value = json_field(object, known.key);
    if (value == nullptr || value->is_structured() || *value == -1) continue;  // -1: no speculation
    AcceptanceWindow window{name, {}, {}, number_of(object, known.key, 1.0, name, ", since the bonus token counts")};
    for (const char* key : known.steps)
      if (const auto steps = count_of(object, key, name)) window.size = Steps(*steps);
    for (const char* key : known.weights)
      if (const auto weight = count_of(object, key, name); weight && *weight > 0 && window.size.index() == 0)
        window.size = Weight(static_cast<double>(*weight));
    all.formats.insert(known.format);
    all.runs[place.configuration].windows.push_back(std::move(window));
    return true;
  }
  return false;
}

// SGLang's arguments among an object's fields, in the words of its log.
std::optional<LoggedDraft> served_draft(const Json& object, const std::string& name) {
  std::string arguments;
  for (const char* key : {"speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"})
    if (const auto value = count_of(object, key, name))
      arguments += (arguments.empty() ? "" : ", ") + std::string(key) + "=" + std::to_string(*value);
  const auto form = sglang_logged_draft(arguments, name);
  return form && form->levels ? form : std::nullopt;
}

// Adds the acceptance of one object; true: its parts add nothing more.
bool add(const Json& object, const Place& place, JsonAcceptance& all) {
  const std::string& name = place.where;
  struct Histogram {
    const char* key;
    const char* format;
  };
  if (const auto form = served_draft(object, name)) all.form = *form;
  for (const Histogram& known :
       {Histogram{"acceptance_histogram", "vLLM JSON"},
        Histogram{"pooled_spec_decode_acceptance_histogram", "AIPerf JSON"},
        Histogram{"spec_correct_drafts_histogram", "SGLang JSON"}, Histogram{"spec_accept_histogram", "SGLang JSON"}}) {
    const auto found = object.find(known.key);
    if (found == object.end() || !found->is_structured()) continue;
    add_histogram(object, known.key, name, all.runs[place.configuration]);
    all.formats.insert(found->is_object()                               ? "AIPerf JSON"
                       : object.contains("total_accepted_draft_tokens") ? "TensorRT-LLM JSON"
                                                                        : known.format);
    return true;
  }
  if (json_field(object, "spec_decode_acceptance_length") != nullptr) {
    add_vllm_benchmark(object, place, all);
    return true;
  }
  if (const Json* const speculation = json_field(object, "specDecodingStats")) {
    add_iteration(object, *speculation, place, all);
    return true;
  }
  if (const Json* const report = json_field(object, "decoding_stats")) {
    const Json* const length = json_field(*report, "acceptance_length_percentiles");
    if (length == nullptr) return false;
    AcceptanceWindow window{name, {}, {}, number_of(*length, "average", 1.0, name, ", since the bonus token counts")};
    const Json* const requests = json_field(object, "request_info");
    if (const auto n = requests == nullptr ? std::nullopt : count_of(*requests, "num_requests", name); n && *n > 0)
      window.size = Weight(static_cast<double>(*n));
    if (!window.acceptance_length) return true;
    all.formats.insert("TensorRT-LLM JSON");
    all.runs[place.configuration].windows.push_back(std::move(window));
    return true;
  }
  if (add_tokens(object, place, all)) return true;
  const Json* const of_request = json_field(object, "speculative_decoding");
  if (of_request != nullptr && of_request->is_object() && !of_request->contains("acceptance_histogram") &&
      count_of(object, "first_iter", name) && count_of(object, "last_iter", name)) {
    all.formats.insert("TensorRT-LLM JSON");
    all.runs[place.configuration].windows.push_back(of_iterations(object, name));
    return true;
  }
  return of_request == nullptr && !object.contains("perf_metrics") && add_length(object, place, all);
}

// The model and the load of a benchmark, whose results stand in an object with them.
void add_benchmark(const Json& object, const std::string& name, JsonAcceptance& all) {
  const Json* const model = json_field(object, "model_id");
  const auto running = count_of(object, "max_concurrency", name);
  if (model != nullptr && model->is_string()) all.models.insert(model->get<std::string>());
  if (running && *running > 0) {
    require_running(static_cast<double>(*running), name);
    all.loads.insert(*running);
  }
}

// The configuration that an object gives the runs in it, after that of the objects around it.
std::string configuration_of(const Json& object, const Place& around) {
  const std::string& name = around.where;
  std::string text = around.configuration;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  for (const char* key : {"model", "model_id", "Name", "label", "method", "drafter"})
    if (const Json* const value = json_field(object, key); value != nullptr && value->is_string())
      add(printable_line(value->get<std::string>()));
  for (const char* key : {"steps", "topk", "num_draft_tokens"})
    if (const auto value = count_of(object, key, name)) add(std::string(key) + " " + std::to_string(*value));
  return text;
}

void collect(const Json& json, const Place& around, JsonAcceptance& all) {
  Place place = around;
  if (json.is_object()) {
    place.configuration = configuration_of(json, around);
    add_benchmark(json, place.where, all);
    if (add(json, place, all)) return;
  }
  if (json.is_structured())
    for (const Json& part : json) collect(part, place, all);
}

}  // namespace

void JsonAcceptance::add(JsonAcceptance&& other) {
  formats.merge(other.formats);
  for (auto& [of, more] : other.runs) {
    JsonRuns& into = runs[of];
    into.windows.insert(into.windows.end(), more.windows.begin(), more.windows.end());
    into.histograms.insert(into.histograms.end(), more.histograms.begin(), more.histograms.end());
    into.longest = std::max(into.longest, more.longest);
    into.draft_tokens += more.draft_tokens;
    into.accepted_tokens += more.accepted_tokens;
  }
  if (other.form.levels) form = other.form;
  throughput.insert(throughput.end(), other.throughput.begin(), other.throughput.end());
  models.merge(other.models);
  loads.merge(other.loads);
  of_all_steps |= other.of_all_steps;
  if (other.of_project) of_project = std::move(other.of_project);
}

void collect_acceptance(const Json& document, const std::string& name, JsonAcceptance& all) {
  if (const Json* const rates = json_field(document, "acceptance_by_position")) {
    if (!rates->is_object())
      throw input_error(name, "acceptance_by_position is no object; expected the result of demo or generate --json");
    all.of_project = of_project(document, name);
    all.formats.insert(all.of_project->format);
    return;
  }
  collect(document, {name, ""}, all);
}

}  // namespace draftproof
