#include "sim/import/read_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/archives/text_file.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/replay.hpp"
#include "sim/import/acceptance_data.hpp"
#include "sim/import/prometheus_text.hpp"
#include "sim/import/rates_csv.hpp"
#include "sim/import/sglang_log.hpp"
#include "sim/import/text_lines.hpp"
#include "sim/import/vllm_log.hpp"

namespace draftproof {
namespace {

// Acceptance from JSON documents, one or one a line: this project's own (demo, generate, verify:
// acceptance_by_position); SGLang's answers and server info (spec_accept_length, avg_spec_accept_length, with
// spec_verify_ct steps where they are said); vLLM's answers with --per-request-spec-decode-metrics
// (metrics.speculative_decoding.acceptance_histogram: entry j counts the steps that accepted j drafts); llama.cpp's
// (timings with predicted_n, draft_n and draft_n_accepted, which say nothing of steps without a draft).

using Json = nlohmann::json;

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
  window.drafts = count_of(document, "steps");
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

// Of one request of vLLM's.
AcceptanceWindow of_histogram(const Json& request, const std::string& name) {
  std::vector<std::int64_t> steps;
  for (const double value : numbers_of(request, "acceptance_histogram", name)) {
    if (!(value >= 0.0 && value <= 1e12 && std::floor(value) == value))
      throw input_error(name, "acceptance_histogram has " + number("%g", value) + "; expected counts of steps");
    steps.push_back(static_cast<std::int64_t>(value));
  }
  AcceptanceWindow window{name, std::reduce(steps.begin(), steps.end()), {}, std::nullopt};
  std::int64_t accepted = 0, above = 0;
  for (std::size_t j = steps.size(); j-- > 1;) {
    above += steps[j];
    accepted += static_cast<std::int64_t>(j) * steps[j];
    window.survival.push_back(*window.drafts > 0 ? static_cast<double>(above) / static_cast<double>(*window.drafts)
                                                 : 0.0);
  }
  std::ranges::reverse(window.survival);
  if (const auto said = count_of(request, "num_accepted_draft_tokens"); said && *said != accepted)
    throw input_error(name, "acceptance_histogram has " + std::to_string(accepted) +
                                " accepted drafts, and num_accepted_draft_tokens is " + std::to_string(*said) +
                                "; expected the same");
  if (*window.drafts > 0)
    window.acceptance_length = 1.0 + static_cast<double>(accepted) / static_cast<double>(*window.drafts);
  return window;
}

// Of one request of llama.cpp's: every step yields a token more than it accepts.
AcceptanceWindow of_timings(const Json& timings, const std::string& name) {
  const std::int64_t tokens = *count_of(timings, "predicted_n");
  const std::int64_t accepted = *count_of(timings, "draft_n_accepted");
  if (accepted < 0 || accepted > *count_of(timings, "draft_n") || accepted >= std::max<std::int64_t>(tokens, 1))
    throw input_error(name, "draft_n_accepted is " + std::to_string(accepted) +
                                "; expected at most draft_n, and less than "
                                "predicted_n");
  const std::int64_t steps = tokens - accepted;
  return {name, steps, {}, static_cast<double>(tokens) / static_cast<double>(steps)};
}

void collect(const Json& json, const std::string& name, std::vector<AcceptanceWindow>& windows, std::string& format) {
  if (json.is_object() && json.contains("acceptance_histogram") && json.at("acceptance_histogram").is_array()) {
    if (AcceptanceWindow window = of_histogram(json, name); *window.drafts > 0) windows.push_back(std::move(window));
    format = "vLLM JSON";
    return;
  }
  if (json.is_object() && count_of(json, "predicted_n") && count_of(json, "draft_n") &&
      count_of(json, "draft_n_accepted")) {
    windows.push_back(of_timings(json, name));
    format = "llama.cpp JSON";
  }
  if (json.is_object())
    for (const char* key : {"spec_accept_length", "avg_spec_accept_length"}) {
      const auto found = json.find(key);
      if (found == json.end() || found->is_null()) continue;
      if (!found->is_number() || found->get<double>() < 1.0)
        throw input_error(name, std::string(key) + " is " + found->dump() +
                                    "; expected a number from 1, since the bonus token counts");
      windows.push_back({name, count_of(json, "spec_verify_ct"), {}, found->get<double>()});
    }
  if (json.is_structured())
    for (const Json& part : json) collect(part, name, windows, format);
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

// Errors (input) naming the line: no JSON; and a document that has none of these, or rates that are not rates.
AcceptanceData read_result_json(std::string_view text, const std::string& name) {
  const Json document = documents_of(text, name);
  if (document.is_object() && document.contains("acceptance_by_position")) {
    if (!document["acceptance_by_position"].is_object())
      throw input_error(name, "acceptance_by_position is no object; expected the result of demo or generate --json");
    return of_project(document, name);
  }
  AcceptanceData data;
  data.format = "SGLang JSON";
  std::vector<AcceptanceWindow> windows;
  collect(document, name, windows, data.format);
  if (windows.empty())
    throw input_error(name,
                      "has no acceptance; expected acceptance_by_position (demo, generate), spec_accept_length "
                      "(SGLang), acceptance_histogram (vLLM) or timings with draft_n (llama.cpp)");
  merge_windows(windows, name, data);
  return data;
}

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 30;

AcceptanceData of_recording(std::string_view text, const std::string& name, const std::string& drafter) {
  const AcceptanceRecording recording = parse_recording(text, name, drafter);
  const auto replay = std::make_shared<Replay>(recording);
  AcceptanceData data;
  data.format = "recorded acceptances";
  data.windows = std::ssize(recording.requests);
  std::int32_t longest = 0;
  for (const RecordedRequest& request : recording.requests)
    for (const std::uint8_t accepted : request.accepted) longest = std::max<std::int32_t>(longest, accepted);
  data.draft_len = std::min(longest, kAcceptanceDepthMax);
  data.survival = replay->survival_in_run(data.draft_len, data.draft_len);
  data.acceptance_length = acceptance_length_of(data.survival);
  data.replay = replay;
  data.notes.push_back("Recorded acceptances of drafter " + recording.drafter +
                       ": every number of drafts is replayed on its own.");
  return data;
}

bool is_json(std::string_view body) {
  const std::string_view first = body.substr(0, body.find('\n'));
  return nlohmann::json::accept(first) || nlohmann::json::accept(body);
}

struct Format {
  AcceptanceData (*read)(std::string_view text, const std::string& name, const ImportOptions& options);
  bool takes_choice = false;
  bool takes_rates = false;
};

std::string_view body_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

// Nothing where the format is not known.
std::optional<Format> format_of(std::string_view text) {
  const std::string_view body = body_of(text);
  if (body.empty()) return std::nullopt;
  constexpr Format kVllm{
      [](std::string_view t, const std::string& name, const ImportOptions&) { return read_vllm_log(t, name); }};
  constexpr Format kSglang{
      [](std::string_view t, const std::string& name, const ImportOptions&) { return read_sglang_log(t, name); }};
  constexpr Format kJson{[](std::string_view t, const std::string& name, const ImportOptions&) {
    return read_result_json(body_of(t), name);
  }};
  constexpr Format kRecording{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                                return of_recording(body_of(t), name, options.choice);
                              },
                              true};
  constexpr Format kPrometheus{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                                 return read_prometheus_text(t, name, options.choice);
                               },
                               true};
  constexpr Format kRates{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                            return read_rates_csv(t, name, options.rates);
                          },
                          false, true};
  // Logs may begin with a bracket or be JSON lines too.
  const bool braced = body.front() == '{' || body.front() == '[';
  if (braced && body.find("\"acc_len\"") != std::string_view::npos) return kRecording;
  if (is_prometheus_text(text)) return kPrometheus;
  if (has_words(text, "SpecDecoding metrics") || has_words(text, "Speculative metrics")) return kVllm;
  if (braced && is_json(body)) return kJson;
  if (is_rates_csv(text)) return kRates;
  if (is_sglang_log(text)) return kSglang;
  if (is_vllm_log(text)) return kVllm;
  return body.front() == '{' ? std::optional(kJson) : std::nullopt;  // which says what is wrong with it
}

AcceptanceData of_any(std::string_view text, const std::string& name, const ImportOptions& options) {
  if (body_of(text).empty()) throw input_error(name, "is empty; expected what a server says of acceptance");
  if (const std::optional<Format> format = format_of(text)) {
    AcceptanceData data = format->read(text, name, options);
    data.takes_choice = format->takes_choice;
    data.takes_rates = format->takes_rates;
    return data;
  }
  throw input_error(name,
                    "is of no known format; expected vLLM's log or Prometheus text, SGLang's log, a CSV of rates "
                    "(with a header), recorded acceptances (JSON lines with acc_len), or the JSON of demo or "
                    "generate");
}

}  // namespace

AcceptanceData parse_acceptance(std::string_view text, const std::string& name, const ImportOptions& options) {
  AcceptanceData data = of_any(text, name, options);
  data.path = name;
  return data;
}

namespace {

// The two files of BEFORE..AFTER, unless a file has that name itself.
std::optional<std::pair<std::string, std::string>> snapshots_of(const std::string& path) {
  std::size_t dots = path.find("..", 1);
  while (dots != std::string::npos && path[dots - 1] == '/') dots = path.find("..", dots + 2);  // the folder above
  if (dots == std::string::npos || dots + 2 >= path.size() || std::filesystem::exists(path)) return std::nullopt;
  return std::pair(path.substr(0, dots), path.substr(dots + 2));
}

}  // namespace

bool names_two_dumps(const std::string& path) {
  return snapshots_of(path).has_value();
}

bool holds_acceptance(const std::string& path) {
  if (const auto both = snapshots_of(path)) return is_prometheus_text(read_text(both->second, kFileBytesMax));
  return format_of(read_text(path, kFileBytesMax)).has_value();
}

AcceptanceData read_acceptance(const std::string& path, const ImportOptions& options) {
  if (const auto both = snapshots_of(path)) {
    AcceptanceData data =
        read_prometheus_difference(read_text(both->first, kFileBytesMax), both->first,
                                   read_text(both->second, kFileBytesMax), both->second, options.choice);
    data.path = path;
    data.takes_choice = true;
    return data;
  }
  return parse_acceptance(read_text(path, kFileBytesMax), path, options);
}

}  // namespace draftproof
