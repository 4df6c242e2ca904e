#include "sim/import/result_json.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

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

void collect(const Json& json, const std::string& name, std::vector<AcceptanceWindow>& windows) {
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
    for (const Json& part : json) collect(part, name, windows);
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
  AcceptanceData data;
  data.format = "SGLang JSON";
  std::vector<AcceptanceWindow> windows;
  collect(document, name, windows);
  if (windows.empty())
    throw input_error(name,
                      "has no acceptance; expected acceptance_by_position (demo, generate) or spec_accept_length "
                      "(SGLang)");
  merge_windows(windows, name, data);
  return data;
}

}  // namespace draftproof
