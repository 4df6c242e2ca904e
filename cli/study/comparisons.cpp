#include "cli/study/comparisons.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/shared/artefacts.hpp"
#include "studies/experiments/paired_difference.hpp"

namespace draftproof {

const Json& list_at(const Json& document, const std::string& pointer, const std::string& where) {
  try {
    const Json& list = document.at(Json::json_pointer(pointer));
    if (list.is_array()) return list;
  } catch (const Json::exception&) {
  }
  std::string lists;
  if (document.is_object())
    for (const auto& [key, value] : document.items())
      if (value.is_array()) lists += (lists.empty() ? " /" : ", /") + key;
  throw input_error(where, in_quotes(pointer) + " is no list of the run's document; it has" +
                               (lists.empty() ? " none" : printable_line(lists)));
}

namespace {

bool is_chosen(const Json& row, const StudyItems& items) {
  return std::ranges::all_of(items.only, [&](const auto& wanted) {
    const Json::json_pointer path("/" + wanted.first);
    if (!row.is_object() || !row.contains(path)) return false;
    const Json& value = row.at(path);
    if (value.is_string()) return value.get<std::string>() == wanted.second;
    return value.is_number() ? number("%g", value.get<double>()) == wanted.second : value.dump() == wanted.second;
  });
}

Json items_of(const Json& document, const StudyItems& items, const std::string& where) {
  const std::size_t star = items.pointer.find("/*/");
  if (star == std::string::npos) return list_at(document, items.pointer, where);
  Json all = Json::array();
  for (const Json& row : list_at(document, items.pointer.substr(0, star), where)) {
    if (!is_chosen(row, items)) continue;
    const Json& list = list_at(row, items.pointer.substr(star + 2), where);
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

// The keys that an item has, for a message.
std::string keys_of(const Json& item) {
  if (!item.is_object()) return "it is no object";
  std::vector<std::string> keys;
  for (const auto& [key, value] : item.items())
    if (value.is_number() || value.is_object()) keys.push_back(value.is_object() ? key + "/..." : key);
  return "it has " + (keys.empty() ? "none" : printable_line(joined(keys, ", ")));
}

std::vector<double> quantities(const Json& items, const StudyItems& side, const StudyComparison& comparison) {
  std::vector<double> values;
  for (const Json& item : items) {
    double value = 1.0;
    for (const auto& [key, power] : {std::pair(comparison.quantity, 1), std::pair(comparison.per, -1)}) {
      if (key.empty()) continue;
      const Json::json_pointer path("/" + key);
      if (!item.is_object() || !item.contains(path) || !item.at(path).is_number())
        throw input_error(comparison.where, "item " + std::to_string(values.size()) + " of " + side.run + ":" +
                                                side.pointer + " has no number " + in_quotes(key) + "; " +
                                                keys_of(item));
      const double number = item.at(path).get<double>();
      if (power < 0 && number == 0.0) throw input_error(comparison.where, in_quotes(key) + " of an item is 0");
      value = power > 0 ? value * number : value / number;
    }
    values.push_back(value);
  }
  return values;
}

// Items that say the length of their prompt are pairs of prompts.
void require_same_items(const Json& a, const Json& b, const std::string& where) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i].is_object() && b[i].is_object() &&
        a[i].value("prompt_tokens", Json()) != b[i].value("prompt_tokens", Json()))
      throw input_error(where, "item " + std::to_string(i) +
                                   " is of another prompt in a than in b; expected the same prompts in the same order");
}

}  // namespace

Table comparisons_of(const Study& study, const std::vector<FinishedRun>& all) {
  std::vector<PairedDifference> family;
  const auto document_of = [&](const std::string& name) -> const Json& {
    const auto run = std::ranges::find(study.runs, name, &StudyRun::name);
    return all[static_cast<std::size_t>(run - study.runs.begin())].document;
  };
  for (const StudyComparison& comparison : study.comparisons) {
    const Json a = items_of(document_of(comparison.a.run), comparison.a, comparison.where);
    const Json b = items_of(document_of(comparison.b.run), comparison.b, comparison.where);
    if (a.size() != b.size())
      throw input_error(comparison.where, "a is " + std::to_string(a.size()) + " items of run " +
                                              in_quotes(comparison.a.run) + ", b " + std::to_string(b.size()) +
                                              " of run " + in_quotes(comparison.b.run) +
                                              "; expected pairs, as many of both");
    require_same_items(a, b, comparison.where);
    try {
      family.push_back(
          paired_difference(quantities(a, comparison.a, comparison), quantities(b, comparison.b, comparison)));
    } catch (const Error& error) {
      if (std::string(error.what()).starts_with("paired values: "))
        throw input_error(comparison.where, std::string(error.what()).substr(15));
      throw;
    }
  }
  correct(family);
  Table table{{"comparison", "pairs", "a", "b", "difference", "low", "high", "p", "p_holm", "detectable"}, {}};
  for (std::size_t i = 0; i < family.size(); ++i) {
    const PairedDifference& d = family[i];
    table.rows.push_back({study.comparisons[i].title, static_cast<std::int64_t>(d.pairs), d.mean_a, d.mean_b,
                          d.difference, d.low, d.high, d.p_value, d.p_holm,
                          d.detectable ? TableCell(*d.detectable) : TableCell("too few pairs")});
  }
  return table;
}

void require_what_is_taken(const Study& study, const StudyRun& run, const Json& document) {
  if (!run.rows.empty()) table_of(list_at(document, run.rows, run.where), run.columns);
  for (const StudyComparison& comparison : study.comparisons)
    for (const StudyItems* side : {&comparison.a, &comparison.b})
      if (side->run == run.name) quantities(items_of(document, *side, comparison.where), *side, comparison);
}

}  // namespace draftproof
