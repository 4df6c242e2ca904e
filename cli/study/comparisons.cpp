#include "cli/study/comparisons.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/shared/artefacts.hpp"
#include "studies/experiments/paired_difference.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {

namespace fs = std::filesystem;

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

// The quantities of both sides, as many of both.
std::pair<std::vector<double>, std::vector<double>> pairs_of(const StudyComparison& comparison,
                                                             const Json& document_of_a, const Json& document_of_b) {
  const Json a = items_of(document_of_a, comparison.a, comparison.where);
  const Json b = items_of(document_of_b, comparison.b, comparison.where);
  if (a.size() != b.size())
    throw input_error(comparison.where, "a is " + std::to_string(a.size()) + " items of run " +
                                            in_quotes(comparison.a.run) + ", b " + std::to_string(b.size()) +
                                            " of run " + in_quotes(comparison.b.run) +
                                            "; expected pairs, as many of both");
  require_same_items(a, b, comparison.where);
  return {quantities(a, comparison.a, comparison), quantities(b, comparison.b, comparison)};
}

PairedDifference difference_of(const StudyComparison& comparison, const Json& document_of_a,
                               const Json& document_of_b) {
  const auto [a, b] = pairs_of(comparison, document_of_a, document_of_b);
  try {
    return paired_difference(a, b);
  } catch (const Error& error) {
    if (std::string(error.what()).starts_with("paired values: "))
      throw input_error(comparison.where, std::string(error.what()).substr(15));
    throw;
  }
}

// Document of a pilot's run; nothing where it has no such run.
std::optional<Json> document_in(const fs::path& pilot, const std::string& run) {
  const fs::path path = pilot / "runs" / (run + ".json");
  if (pilot.empty() || !fs::exists(path)) return std::nullopt;
  Json document = parse_json<Json>(text_of_file(path), path.string());
  if (document.is_discarded()) throw input_error(path.string(), "is no JSON; expected the document of a run");
  return document;
}

}  // namespace

std::vector<std::string> planned_pairs(const Study& study, const std::string& pilot) {
  if (!pilot.empty() && !fs::is_directory(pilot))
    throw usage_error("--pilot", in_quotes(pilot) + " is no folder; expected that of a study with runs of these names");
  std::vector<std::string> sentences;
  for (const StudyComparison& comparison : study.comparisons) {
    if (!comparison.detect) continue;
    std::optional<double> spread = comparison.spread;
    std::string by = "the file's own";
    const auto a = document_in(pilot, comparison.a.run), b = document_in(pilot, comparison.b.run);
    if (a && b) {
      const PairedDifference seen = difference_of(comparison, *a, *b);
      spread = seen.spread;
      by = "of the " + std::to_string(seen.pairs) + " pairs in " + pilot;
    }
    const std::string wished = comparison.title + ": a true difference of " + number("%g", *comparison.detect);
    if (!spread)
      sentences.push_back(
          wished +
          ": how many pairs it needs is not known; --pilot DIR, the folder of a small study with these runs, or "
          "spread = X in the file says it");
    else if (*spread > 0.0)
      sentences.push_back(wished + " shows (p < 0.05, with a probability of 80 %) in " +
                          std::to_string(pairs_needed(*spread, *comparison.detect)) + " pairs, by the spread " +
                          number("%.3g", *spread) + ", " + by);
    else
      sentences.push_back(wished + ": the pairs in " + pilot + " do not differ at all, and say nothing of a spread");
  }
  return sentences;
}

std::string forest_plot(const Table& comparisons) {
  const auto cell = [](const std::vector<TableCell>& row, std::size_t column) { return std::get<double>(row[column]); };
  const bool in_percent = std::ranges::all_of(comparisons.rows, [&](const auto& row) { return cell(row, 3) > 0.0; });
  std::ostringstream script;
  script << "$rows << EOD\n";
  double least = 0.0, most = 0.0;  // with the null
  const std::size_t count = comparisons.rows.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<TableCell>& row = comparisons.rows[i];
    const double unit = in_percent ? 100.0 / cell(row, 3) : 1.0;
    script << unit * cell(row, 4) << ' ' << count - i << ' ' << unit * cell(row, 5) << ' ' << unit * cell(row, 6)
           << '\n';
    for (std::size_t column = 4; column <= 6; ++column) {
      least = std::min(least, unit * cell(row, column));  // NaN changes neither
      most = std::max(most, unit * cell(row, column));
    }
  }
  const double margin = most > least ? 0.05 * (most - least) : 1.0;
  script << "EOD\nset title 'Differences a - b with 95 % intervals'\nset key off\nset grid xtics lc rgb '#dddddd'\n"
         << "set xlabel " << (in_percent ? "'difference, % of b'" : "'difference'") << "\nset yrange [0.4:" << count
         << ".6]\nset ytics (";
  for (std::size_t i = 0; i < count; ++i)
    script << (i == 0 ? "" : ", ") << gnuplot_quoted(std::get<std::string>(comparisons.rows[i][0])) << ' ' << count - i;
  script << ")\nset arrow from 0, graph 0 to 0, graph 1 nohead lw 1 lc rgb '#555555'\nset xrange [" << least - margin
         << ':' << most + margin
         << "]\nplot $rows "
            "using 1:2:3:4 with xerrorbars pt 7 ps 0.7 lw 2 lc rgb '#1f5fa8'\n";
  return script.str();
}

Table comparisons_of(const Study& study, const std::vector<FinishedRun>& all) {
  std::vector<PairedDifference> family;
  const auto document_of = [&](const std::string& name) -> const Json& {
    const auto run = std::ranges::find(study.runs, name, &StudyRun::name);
    return all[static_cast<std::size_t>(run - study.runs.begin())].document;
  };
  for (const StudyComparison& comparison : study.comparisons)
    family.push_back(difference_of(comparison, document_of(comparison.a.run), document_of(comparison.b.run)));
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
  if (!run.rows.empty()) {
    const Json& rows = list_at(document, run.rows, run.where);
    for (const std::string& column : run.columns) {
      const auto has_it = [&](const Json& row) { return row.contains(Json::json_pointer("/" + column)); };
      if (rows.empty() || std::ranges::any_of(rows, has_it)) continue;
      std::vector<std::string> keys;
      if (rows[0].is_object())
        for (const auto& item : rows[0].items()) keys.push_back(item.key());
      throw input_error(run.where, "columns: no item of " + run.rows + " has " + in_quotes(column) + "; it has " +
                                       printable_line(joined(keys, ", ")) + did_you_mean(column, keys));
    }
  }
  for (const StudyComparison& comparison : study.comparisons)
    for (const StudyItems* side : {&comparison.a, &comparison.b})
      if (side->run == run.name) quantities(items_of(document, *side, comparison.where), *side, comparison);
}

}  // namespace draftproof
