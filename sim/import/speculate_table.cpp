#include "sim/import/speculate_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "sim/acceptance/rates.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

struct Row {
  std::string drafter;
  std::int64_t drafts_max = 0;
  std::int64_t steps = 0, drafts = 0, draft_tokens = 0, accepted = 0;
  std::vector<double> survival, errors;  // of the positions that were reached
};

std::string temperature_text(double temperature) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), temperature).ptr};
}

// Their sums over a table stay in 64 bits.
constexpr std::int64_t kTableCountMax = std::int64_t{1} << 40;

std::int64_t table_count(const Json& row, const char* key, const std::string& where) {
  const Json& value = row.at(key);
  if (!value.is_number_integer() || value < 0 || value > kTableCountMax)
    throw input_error(where, std::string("'") + key + "' is " +
                                 printable_line(value.dump(-1, ' ', true)).substr(0, 40) +
                                 "; expected an integer from 0 to 2^40");
  return value.get<std::int64_t>();
}

Row read_row(const Json& json, const std::string& where) {
  try {
    Row row;
    row.drafter =
        json.at("drafter").get<std::string>() + ", T = " + temperature_text(json.at("temperature").get<double>());
    row.drafts_max = table_count(json, "k", where);
    row.steps = table_count(json, "steps", where);
    row.drafts = table_count(json, "drafts", where);
    row.draft_tokens = table_count(json, "draft_tokens", where);
    row.accepted = table_count(json, "accepted", where);
    const Json& rates = json.at("acceptance_by_position");
    const Json& errors = rates.at("unconditional_standard_error");
    for (std::size_t i = 0; i < rates.at("unconditional").size() && !rates.at("unconditional")[i].is_null(); ++i) {
      row.survival.push_back(rates.at("unconditional")[i].get<double>());
      if (i < errors.size() && errors[i].is_number()) row.errors.push_back(errors[i].get<double>());
    }
    return row;
  } catch (const Json::exception& error) {
    throw input_error(where, std::string("is no row of speculate's table: ") + error.what());
  }
}

AcceptanceData pooled(const std::vector<Row>& rows, const std::string& name) {
  AcceptanceData data;
  data.path = name;
  data.format = "speculate's table";
  data.windows = std::ssize(rows);
  std::size_t longest = 0;
  bool has_errors = true;
  std::int64_t steps = 0, drafts = 0, draft_tokens = 0, accepted = 0;
  for (const Row& row : rows) {
    longest = std::max(longest, row.survival.size());
    has_errors &= row.errors.size() == row.survival.size();
    steps += row.steps;
    drafts += row.drafts;
    draft_tokens += row.draft_tokens;
    accepted += row.accepted;
  }
  for (std::size_t i = 0; i < longest; ++i) {
    double sum = 0.0, squares = 0.0;
    for (const Row& row : rows) {
      if (i >= row.survival.size()) continue;  // never reached: 0
      // The table's rates are over all steps; these over the steps that had a draft.
      const double share = static_cast<double>(row.steps) / static_cast<double>(drafts);
      sum += share * row.survival[i];
      if (has_errors) squares += share * share * row.errors[i] * row.errors[i];
    }
    data.survival.push_back(sum);
    if (has_errors) data.survival_error.push_back(std::sqrt(squares));
  }
  require_survival(data.survival, name, 1e-9);
  data.draft_len = static_cast<std::int32_t>(rows.front().drafts_max);
  data.drafts = drafts;
  data.draft_share = static_cast<double>(drafts) / static_cast<double>(steps);
  data.draft_tokens = draft_tokens;
  data.accepted_tokens = accepted;
  data.acceptance_length = acceptance_length_of(data.survival);
  data.notes.emplace_back("The rates are over the steps with a draft of all kinds of work.");
  return data;
}

}  // namespace

bool is_speculate_table(const Json& document) {
  return document.is_object() && document.contains("rows") && document["rows"].is_array() &&
         document.contains("left_out");
}

std::vector<DrafterAcceptance> acceptances_of_speculate(const Json& document, const std::string& name) {
  if (!is_speculate_table(document))
    throw input_error(
        name, "is no table of `draftproof speculate`; expected an object with \"left_out\" and a list \"rows\"");
  std::vector<std::vector<Row>> groups;  // of one drafter and temperature, and of its most drafts
  for (std::size_t i = 0; i < document.at("rows").size(); ++i) {
    const Json& json = document["rows"][i];
    if (json.is_object() && json.contains("tree") && !json["tree"].is_null()) continue;
    const Row row = read_row(json, name + ", row " + std::to_string(i + 1));
    if (row.survival.empty() || row.drafts <= 0 || row.drafts > row.steps) continue;
    const auto group =
        std::ranges::find_if(groups, [&](const auto& rows) { return rows.front().drafter == row.drafter; });
    if (group == groups.end()) {
      groups.push_back({row});
    } else if (row.drafts_max == group->front().drafts_max) {
      group->push_back(row);
    } else if (row.drafts_max > group->front().drafts_max) {
      *group = {row};
    }
  }
  if (groups.empty()) throw input_error(name, "has no row of a chain that drafted; expected a table with one");
  std::vector<DrafterAcceptance> acceptances;
  for (const std::vector<Row>& rows : groups) acceptances.push_back({rows.front().drafter, pooled(rows, name)});
  return acceptances;
}

}  // namespace draftproof
