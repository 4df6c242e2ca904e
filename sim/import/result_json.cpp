#include "sim/import/result_json.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/words.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/import/json_acceptance.hpp"
#include "sim/import/json_documents.hpp"
#include "sim/import/likely_formats.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

std::string id_of(const Json& chunk) {
  for (const Json* of : {&chunk, json_field(chunk, "meta_info")})
    if (const Json* const id = of == nullptr ? nullptr : json_field(*of, "id"); id != nullptr && id->is_string())
      return id->get<std::string>();
  return "";
}

void collect_all(std::string_view text, const std::string& name, JsonAcceptance& all) {
  std::map<std::string, JsonAcceptance> answers;  // by id, the newest part that says something
  const auto end = [&](auto from, auto to) {
    for (auto answer = from; answer != to; ++answer) all.add(std::move(answer->second));
    answers.erase(from, to);
  };
  JsonDocuments documents(text, name);
  while (documents.next()) {
    const Json& document = documents.document();
    if (documents.ended_before())
      if (const auto nameless = answers.find(""); nameless != answers.end()) end(nameless, std::next(nameless));
    if (!documents.is_chunk()) {
      collect_acceptance(document, documents.where(), all);
      continue;
    }
    const std::string id = id_of(document);
    JsonAcceptance part;
    collect_acceptance(document, documents.where(), part);
    if (!part.empty()) answers[id] = std::move(part);
    if (const Json* const stop = json_field(document, "stop"); stop != nullptr && *stop == true)
      if (const auto answer = answers.find(id); answer != answers.end()) end(answer, std::next(answer));
  }
  end(answers.begin(), answers.end());
}

AcceptanceData data_of(JsonAcceptance&& all, std::string_view text, const std::string& name,
                       const std::string& configuration) {
  if (all.empty()) throw input_error(name, "has no acceptance. " + likely_formats(text));
  if (all.formats.size() > 1)
    throw input_error(name, "has " + joined(all.formats, " and ") + "; expected the answers of one server");
  if (all.of_project) return *std::move(all.of_project);
  std::vector<std::string> names;
  for (const auto& [of, runs] : all.runs) names.push_back(of);
  if (names.size() > 1 || !configuration.empty()) {
    const std::string shown = first_names(names);
    if (configuration.empty())
      throw input_error(name, "has runs of several configurations (" + shown + "); expected one, chosen by its name");
    if (!all.runs.contains(configuration))
      throw input_error(name, "has no run of configuration " + in_quotes(configuration) + "; expected one of " + shown);
  }
  JsonRuns& runs = configuration.empty() ? all.runs.begin()->second : all.runs.at(configuration);
  AcceptanceData data;
  data.format = *all.formats.begin();
  // A histogram ends behind the most that a step accepted.
  std::vector<AcceptanceWindow>& windows = runs.histograms;
  for (AcceptanceWindow& window : windows) window.survival.resize(runs.longest, 0.0);
  windows.insert(windows.end(), runs.windows.begin(), runs.windows.end());
  data.draft_len = all.form.levels.value_or(0);
  data.tree_nodes = all.form.tree_nodes;
  merge_windows(windows, name, data);
  if (names.size() == 1) data.throughput = std::move(all.throughput);
  if (all.models.size() == 1) data.model = *all.models.begin();
  if (all.loads.size() == 1) data.load = *all.loads.begin();
  if (runs.draft_tokens > 0) {
    data.draft_tokens = runs.draft_tokens;
    data.accepted_tokens = runs.accepted_tokens;
    if (data.drafts && data.draft_len == 0)
      set_least_draft_len(data, static_cast<double>(runs.draft_tokens), static_cast<double>(*data.drafts));
  }
  if (all.of_all_steps)
    data.notes.emplace_back(
        "The acceptance length is of all steps, those without a draft included: tokens less accepted drafts.");
  return data;
}

}  // namespace

AcceptanceData read_result_json(std::string_view text, const std::string& name, const std::string& configuration) {
  JsonAcceptance all;
  collect_all(text, name, all);
  return data_of(std::move(all), text, name, configuration);
}

AcceptanceData read_result_jsons(const std::vector<NamedText>& texts, const std::string& name,
                                 const std::string& configuration) {
  JsonAcceptance all;
  std::int64_t used = 0;
  for (const NamedText& text : texts) {
    JsonAcceptance one;
    collect_all(text.text, text.name, one);
    if (!one.empty()) ++used;
    all.add(std::move(one));
  }
  AcceptanceData data = data_of(std::move(all), texts.empty() ? "" : texts.front().text, name, configuration);
  if (const std::int64_t others = std::ssize(texts) - used; others > 0)
    data.notes.push_back(std::to_string(others) + " of " + counted_noun(std::ssize(texts), "file") +
                         " without acceptance.");
  return data;
}

}  // namespace draftproof
