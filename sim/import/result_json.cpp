#include "sim/import/result_json.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kStepsMax = 1'000'000'000'000;

// The numbers of a list, up to the first null: nothing is known behind it.
std::vector<double> numbers_of(const Json& object, const char* key, const std::string& name) {
  std::vector<double> numbers;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return numbers;
  for (const Json& value : *found) {
    if (value.is_null()) break;
    if (!value.is_number()) throw input_error(name, std::string(key) + " has " + value.dump() + "; expected numbers");
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

std::optional<std::int64_t> count_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

// Rates over all steps, those without a draft included: what a step gains.
AcceptanceData of_project(const Json& document, const std::string& name) {
  AcceptanceData data;
  data.format = "draftproof JSON";
  const Json& by_position = document["acceptance_by_position"];
  AcceptanceWindow window;
  window.where = name;
  window.size = counted(count_of(document, "steps"));
  window.survival = numbers_of(by_position, "unconditional", name);
  require_survival(window.survival, name + ", acceptance_by_position.unconditional", 1e-9);
  if (window.survival.empty())
    throw input_error(name, "acceptance_by_position.unconditional is empty; expected the result of a run that drafted");
  merge_windows({window}, name, data);
  data.draft_tokens = count_of(document, "draft_tokens");
  data.accepted_tokens = count_of(document, "accepted");
  const std::vector<double> errors = numbers_of(by_position, "unconditional_standard_error", name);
  if (errors.size() == data.survival.size()) data.survival_error = errors;
  data.notes.push_back("The rates are over all steps, those without a draft included.");
  return data;
}

struct Collected {
  std::set<std::string> formats;
  std::vector<AcceptanceWindow> histograms, lengths;
  std::size_t longest = 0;  // draft that a histogram knows of; another may end before it
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

void add_histogram(const Json& of, const char* key, const std::string& name, Collected& all) {
  const std::map<std::int32_t, std::int64_t> steps = steps_of(of.at(key), name + ", " + key);
  const std::int32_t longest = steps.empty() ? 0 : steps.rbegin()->first;
  std::int64_t drafts = 0, accepted = 0;
  for (const auto& [length, count] : steps) {
    drafts += count;
    accepted += length * count;
  }
  for (const char* total : {"num_accepted_draft_tokens", "total_accepted_draft_tokens"})
    if (const auto said = count_of(of, total); said && *said != accepted)
      throw input_error(name, std::string(key) + " has " + std::to_string(accepted) + " accepted drafts, and " + total +
                                  " is " + std::to_string(*said) + "; expected the same");
  all.longest = std::max({all.longest, static_cast<std::size_t>(longest),
                          static_cast<std::size_t>(std::clamp<std::int64_t>(count_of(of, "num_spec_tokens").value_or(0),
                                                                            0, kAcceptanceDepthMax))});
  if (drafts == 0) return;
  AcceptanceWindow window{name, Steps(drafts), {}, 1.0 + static_cast<double>(accepted) / static_cast<double>(drafts)};
  std::int64_t reached = drafts;
  for (std::int32_t i = 0; i < longest; ++i) {
    if (const auto ended = steps.find(i); ended != steps.end()) reached -= ended->second;
    window.survival.push_back(static_cast<double>(reached) / static_cast<double>(drafts));
  }
  all.histograms.push_back(std::move(window));
}

// Of one request of llama.cpp's: every step yields a token more than it accepts.
AcceptanceWindow of_timings(const Json& timings, const std::string& name) {
  const std::int64_t tokens = count_of(timings, "predicted_n").value();
  const std::int64_t accepted = count_of(timings, "draft_n_accepted").value();
  if (accepted < 0 || accepted > count_of(timings, "draft_n").value() || accepted >= std::max<std::int64_t>(tokens, 1))
    throw input_error(name, "draft_n_accepted is " + std::to_string(accepted) +
                                "; expected at most draft_n, and less than predicted_n");
  const std::int64_t steps = tokens - accepted;
  return {name, Steps(steps), {}, static_cast<double>(tokens) / static_cast<double>(steps)};
}

// Of one request of TensorRT-LLM's: a decoding step an iteration from the first token to the last.
AcceptanceWindow of_iterations(const Json& request, const std::string& name) {
  const std::int64_t steps = count_of(request, "last_iter").value() - count_of(request, "first_iter").value();
  const Json& speculation = request.at("speculative_decoding");
  const std::int64_t accepted = count_of(speculation, "total_accepted_draft_tokens").value_or(-1);
  if (accepted < 0 || accepted > count_of(speculation, "total_draft_tokens").value_or(kStepsMax))
    throw input_error(name, "total_accepted_draft_tokens is no count up to total_draft_tokens; expected one");
  if (steps < 1 && accepted > 0)
    throw input_error(name, "last_iter is not after first_iter; expected the iterations in which the request ran");
  if (steps < 1) return {name, Steps(0), {}, 1.0};
  return {name, Steps(steps), {}, 1.0 + static_cast<double>(accepted) / static_cast<double>(steps)};
}

AcceptanceWindow of_length(const Json& object, const char* key, const char* steps, const std::string& name) {
  const Json& length = object.at(key);
  if (!length.is_number() || length.get<double>() < 1.0)
    throw input_error(
        name, std::string(key) + " is " + length.dump() + "; expected a number from 1, since the bonus token counts");
  return {name, counted(count_of(object, steps)), {}, length.get<double>()};
}

bool has(const Json& object, const char* key) {
  return object.contains(key) && !object.at(key).is_null();
}

// What one object says itself; true: its parts say no more of it.
bool add(const Json& object, const std::string& name, Collected& all) {
  struct Histogram {
    const char* key;
    const char* format;
  };
  for (const Histogram& known :
       {Histogram{"acceptance_histogram", "vLLM JSON"},
        Histogram{"pooled_spec_decode_acceptance_histogram", "AIPerf JSON"},
        Histogram{"spec_correct_drafts_histogram", "SGLang JSON"}, Histogram{"spec_accept_histogram", "SGLang JSON"}}) {
    const auto found = object.find(known.key);
    if (found == object.end() || !found->is_structured()) continue;
    add_histogram(object, known.key, name, all);
    all.formats.insert(found->is_object()                               ? "AIPerf JSON"
                       : object.contains("total_accepted_draft_tokens") ? "TensorRT-LLM JSON"
                                                                        : known.format);
    return true;
  }
  if (count_of(object, "predicted_n") && count_of(object, "draft_n") && count_of(object, "draft_n_accepted")) {
    all.lengths.push_back(of_timings(object, name));
    all.formats.insert("llama.cpp JSON");
  }
  if (count_of(object, "first_iter") && count_of(object, "last_iter") && object.contains("speculative_decoding") &&
      object.at("speculative_decoding").is_object() &&
      !object.at("speculative_decoding").contains("acceptance_histogram")) {
    all.lengths.push_back(of_iterations(object, name));
    all.formats.insert("TensorRT-LLM JSON");
    return true;
  }
  const bool counted = object.contains("speculative_decoding") || object.contains("perf_metrics");
  if (has(object, "avg_decoded_tokens_per_iter") && !counted) {
    all.lengths.push_back(of_length(object, "avg_decoded_tokens_per_iter", "num_spec_steps", name));
    all.formats.insert("TensorRT-LLM JSON");
  }
  for (const char* key : {"spec_accept_length", "avg_spec_accept_length"})
    if (has(object, key)) {
      all.lengths.push_back(of_length(object, key, "spec_verify_ct", name));
      all.formats.insert("SGLang JSON");
    }
  return false;
}

void collect(const Json& json, const std::string& name, Collected& all) {
  if (json.is_object() && add(json, name, all)) return;
  if (json.is_structured())
    for (const Json& part : json) collect(part, name, all);
}

// One document, or one a line.
Json documents_of(std::string_view text, const std::string& name) {
  auto document = parse_json<Json>(text, name);
  if (!document.is_discarded()) return document;
  Json list = Json::array();
  TextLines lines(text, name);
  while (lines.next()) {
    if (lines.line().find_first_not_of(" \t") == std::string::npos) continue;
    auto line = parse_json<Json>(lines.line(), lines.where());
    if (line.is_discarded()) {
      if (lines.is_cut() && !list.empty()) break;
      throw input_error(lines.where(), "is no JSON document; expected one a line, or one in all");
    }
    list.push_back(std::move(line));
  }
  return list;
}

}  // namespace

AcceptanceData read_result_json(std::string_view text, const std::string& name) {
  const Json document = documents_of(text, name);
  if (document.is_object() && document.contains("acceptance_by_position")) {
    if (!document["acceptance_by_position"].is_object())
      throw input_error(name, "acceptance_by_position is no object; expected the result of demo or generate --json");
    return of_project(document, name);
  }
  Collected all;
  collect(document, name, all);
  if (all.histograms.empty() && all.lengths.empty())
    throw input_error(name,
                      "has no acceptance; expected acceptance_by_position (demo, generate), acceptance_histogram "
                      "(vLLM, TensorRT-LLM, AIPerf), spec_correct_drafts_histogram or spec_accept_length (SGLang), or "
                      "timings with draft_n (llama.cpp)");
  if (all.formats.size() > 1) {
    std::string both;
    for (const std::string& format : all.formats) both += (both.empty() ? "" : " and ") + format;
    throw input_error(name, "has " + both + "; expected the answers of one server");
  }
  // A histogram ends behind the most that a step accepted.
  std::vector<AcceptanceWindow>& windows = all.histograms;
  for (AcceptanceWindow& window : windows) window.survival.resize(all.longest, 0.0);
  windows.insert(windows.end(), all.lengths.begin(), all.lengths.end());
  AcceptanceData data;
  data.format = *all.formats.begin();
  merge_windows(windows, name, data);
  return data;
}

}  // namespace draftproof
