#include "sim/import/rates_csv.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

constexpr std::array kLengthColumns{"mean_acceptance_length", "acceptance_length", "tau"};

// Names that people give the columns, in lower case with underscores for blanks and dashes.
struct Names {
  const char* column;
  std::vector<std::string> others;
};
const std::vector<Names>& other_names() {
  static const std::vector<Names> names{
      {"position", {"pos", "draft_position", "token_position", "draft_token"}},
      {"conditional", {"conditional_rate", "conditional_acceptance_rate", "conditional_acceptance", "alpha", "a_i"}},
      {"unconditional",
       {"unconditional_rate", "unconditional_acceptance_rate", "unconditional_acceptance", "survival", "cumulative",
        "s_i"}},
      {"rate", {"acceptance_rate", "acceptance", "p", "per_position_acceptance_rate"}},
      {"rate_kind", {"kind", "type"}},
      {"accepted", {"accepted_tokens", "num_accepted"}},
      {"drafts", {"num_drafts", "draft_steps"}},
      {"mean_acceptance_length", {"mean_accept_length", "accept_length", "accept_len"}},
  };
  return names;
}

std::string plain_name(std::string name) {
  for (char& c : name) c = c == ' ' || c == '-' ? '_' : lower_case(c);
  return name;
}

// The table with our names for its columns, where it has not both. K stays as it is.
CsvTable with_our_names(CsvTable table) {
  for (std::string& column : table.columns) {
    const std::string plain = plain_name(column);
    if (plain != "k" && table.column(plain) < 0) column = plain;
    for (const Names& names : other_names())
      if (std::ranges::count(names.others, plain) > 0 && table.column(names.column) < 0) column = names.column;
  }
  return table;
}

// Semicolons and tabs as commas, where the header has no comma.
std::string with_commas(std::string_view text) {
  std::string out(text);
  const std::string_view header = std::string_view(out).substr(0, out.find('\n'));
  if (header.find(',') != std::string_view::npos) return out;
  const char separator = header.find(';') != std::string_view::npos ? ';' : '\t';
  std::ranges::replace(out, separator, ',');
  return out;
}

// A row's cells by the names of their columns.
class Cells {
 public:
  Cells(const CsvTable& table, const CsvRow& row, const std::string& name)
      : table_(table), row_(row), where_(name + ", line " + std::to_string(row.line)) {}

  const std::string& where() const { return where_; }
  std::string text(std::string_view column) const {
    const int at = table_.column(column);
    return at < 0 || static_cast<std::size_t>(at) >= row_.fields.size() ? ""
                                                                        : row_.fields[static_cast<std::size_t>(at)];
  }
  std::optional<double> number(std::string_view column) const {
    std::string cell = text(column);
    if (cell.empty() || has_words(cell, "nan")) return std::nullopt;
    const bool percent = cell.ends_with('%');
    if (percent) cell.pop_back();
    const auto value = read_number(cell);
    if (!value)
      throw input_error(where_, std::string(column) + " is " + in_quotes(text(column)) + "; expected a number");
    return percent ? *value / 100.0 : *value;
  }
  std::optional<std::int64_t> count(std::string_view column) const {
    const auto value = number(column);
    if (!value) return std::nullopt;
    if (*value < 0.0 || *value != std::floor(*value) || *value > 1e15)
      throw input_error(where_, std::string(column) + " is " + in_quotes(text(column)) + "; expected a count");
    return static_cast<std::int64_t>(*value);
  }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
  std::string where_;
};

enum class Kind { unknown, conditional, unconditional, per_rank, differences };

Kind kind_of(const std::string& words) {
  if (has_words(words, "rank")) return Kind::per_rank;
  if (has_words(words, "increment") || has_words(words, "difference") || has_words(words, "separate"))
    return Kind::differences;
  if (has_words(words, "uncond")) return Kind::unconditional;
  if (has_words(words, "cond")) return Kind::conditional;
  return Kind::unknown;
}

// The acceptance length with the bonus token.
std::optional<double> length_of(const Cells& cells) {
  for (const char* column : kLengthColumns) {
    const auto length = cells.number(column);
    if (!length) continue;
    const std::string kind = cells.text("tau_kind");
    const bool without = has_words(kind, "excl") || has_words(kind, "without") || has_words(kind, "no bonus");
    const double with_bonus = without ? *length + 1.0 : *length;
    if (with_bonus < 1.0)
      throw input_error(cells.where(),
                        std::string(column) + " is " + in_quotes(cells.text(column)) +
                            "; expected at least 1, since the bonus token counts (else say so in tau_kind)");
    return with_bonus;
  }
  return std::nullopt;
}

// Which kind of rates gives this acceptance length?
Kind kind_by_length(const std::vector<double>& rates, std::optional<double> length) {
  if (!length) return Kind::unknown;
  constexpr double kSlack = 0.02;
  double sum = 1.0;
  for (const double r : rates) sum += r;
  const bool unconditional = std::abs(sum - *length) <= kSlack;
  const bool conditional = std::abs(acceptance_length_of(survival_of(rates)) - *length) <= kSlack;
  return unconditional ? Kind::unconditional : conditional ? Kind::conditional : Kind::unknown;
}

RateRow row_of(const CsvTable& table, const CsvRow& csv, const std::string& name, const std::string& told) {
  const Cells cells(table, csv, name);
  RateRow row;
  row.line = csv.line;
  row.window.where = cells.where();
  for (const char* column : {"engine", "hardware", "target_model", "draft_method", "draft_model", "K"})
    row.configuration.append(row.configuration.empty() ? "" : ", ").append(cells.text(column));
  std::vector<double> rates;
  for (int i = 1;; ++i) {
    const auto rate = cells.number("p" + std::to_string(i));
    if (!rate) break;
    rates.push_back(*rate);
  }
  row.draft_len = static_cast<std::int32_t>(cells.count("K").value_or(std::ssize(rates)));
  row.window.acceptance_length = length_of(cells);
  row.window.size = counted(cells.count("drafts"));
  row.draft_tokens = cells.count("num_draft_tokens");
  row.accepted_tokens = cells.count("num_accepted_tokens");
  if (rates.empty()) {
    if (!row.window.acceptance_length)
      throw input_error(cells.where(), "has neither p1 nor an acceptance length; expected one or the other");
    return row;
  }
  const std::string words = cells.text("rate_kind");
  Kind kind = kind_of(words);
  if (kind == Kind::unknown && words.empty()) kind = kind_by_length(rates, row.window.acceptance_length);
  if (kind == Kind::unknown) kind = kind_of(told);
  switch (kind) {
    case Kind::unknown:
      throw input_error(cells.where(),
                        "does not say whether p1, p2, ... are conditional; expected conditional or "
                        "unconditional in a column rate_kind, or --rates (of predict --metrics-rates)");
    case Kind::per_rank:
      throw input_error(cells.where(),
                        "has rates of siblings by rank, not of positions; expected an acceptance model "
                        "ranks:... made of them");
    case Kind::differences:
      row.notes.push_back("Line " + std::to_string(csv.line) +
                          ": differences of acceptance lengths from separate runs are not rates; only the length is "
                          "used.");
      if (!row.window.acceptance_length)
        throw input_error(cells.where(), "has differences of acceptance lengths and no length; expected one");
      return row;
    case Kind::conditional:
      for (std::size_t i = 0; i < rates.size(); ++i)
        if (!(rates[i] >= 0.0 && rates[i] <= 1.0))
          throw input_error(cells.where(), "p" + std::to_string(i + 1) + " is " + std::to_string(rates[i]) +
                                               "; expected a number in [0, 1]");
      row.window.survival = survival_of(rates);
      break;
    case Kind::unconditional:
      row.window.survival = std::move(rates);
  }
  require_survival(row.window.survival, cells.where(), 0.0021);
  if (const auto* steps = std::get_if<Steps>(&row.window.size);
      steps != nullptr && steps->count > 0 && row.draft_tokens && kind == Kind::unconditional)
    row.window.reach =
        reach_of(static_cast<double>(steps->count), static_cast<double>(*row.draft_tokens), row.window.survival);
  const std::string tau_kind = cells.text("tau_kind");
  if (has_words(tau_kind, "all positions")) {
    row.notes.push_back("Line " + std::to_string(csv.line) +
                        ": the rates are means over all positions of a text; the steps of a server begin behind "
                        "rejections and accept less.");
    row.window.acceptance_length.reset();
    row.window.size = {};
  }
  if (has_words(tau_kind, "tree") && row.window.acceptance_length) {
    row.notes.push_back("Line " + std::to_string(csv.line) +
                        ": the rates are of chains and the acceptance length is of a tree; the rates are used.");
    row.window.acceptance_length.reset();
  }
  if (kind == Kind::unconditional && row.window.acceptance_length &&
      acceptance_length_of(row.window.survival) > *row.window.acceptance_length + 0.05)
    throw input_error(cells.where(), "the rates add up to an acceptance length of " +
                                         std::to_string(acceptance_length_of(row.window.survival)) +
                                         ", and it is given as " + std::to_string(*row.window.acceptance_length) +
                                         "; expected unconditional rates, whose sum is that length less 1");
  return row;
}

// The table of positions.
AcceptanceData read_positions(const CsvTable& table, const std::string& name, const std::string& told) {
  const auto has = [&](const char* column) { return table.column(column) >= 0; };
  const char* steps = has("steps") ? "steps" : has("drafts") ? "drafts" : nullptr;
  const char* accepted = has("accepted_all_steps") ? "accepted_all_steps" : "accepted";
  const bool counts = steps != nullptr && has(accepted);
  const bool reached = has("reached") && has("accepted");
  // Plain rates, if the first row or the caller says what they are.
  const Kind kind =
      table.rows.empty() ? Kind::unknown : kind_of(Cells(table, table.rows[0], name).text("rate_kind") + told);
  const bool rates = has("rate") && (kind == Kind::conditional || kind == Kind::unconditional);
  if (!counts && !has("unconditional") && !has("conditional") && !reached && !rates)
    throw input_error(name,
                      "has the column position, and none that says what the rates are; expected conditional, "
                      "unconditional, or accepted with steps; or --rates (of predict --metrics-rates)");
  AcceptanceData data;
  data.format = "CSV of rates";
  AcceptanceWindow window;
  window.where = name;
  std::vector<double> errors;
  double survived = 1.0;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Cells cells(table, table.rows[i], name);
    const auto position = cells.count("position");
    if (i == 0) first = position.value_or(-1);
    if (!position || first < 0 || first > 1 || *position != first + static_cast<std::int64_t>(i))
      throw input_error(cells.where(), "position is " + in_quotes(cells.text("position")) +
                                           "; expected positions in order, from 0 or 1");
    std::optional<double> s;
    if (counts) {
      const auto of = cells.count(steps);
      const auto n = cells.count(accepted);
      if (of && n && *of > 0) {
        s = static_cast<double>(*n) / static_cast<double>(*of);
        if (const auto* before = std::get_if<Steps>(&window.size); before && before->count != *of)
          throw input_error(cells.where(), std::string(steps) + " differs from the row before; expected all steps");
        window.size = Steps(*of);
      }
    }
    if (!s) s = cells.number("unconditional");
    if (!s && rates && kind == Kind::unconditional) s = cells.number("rate");
    if (!s) {
      std::optional<double> rate = cells.number("conditional");
      if (!rate && rates) rate = cells.number("rate");
      if (!rate && reached) {
        const auto of = cells.count("reached");
        const auto n = cells.count("accepted");
        if (of && n && *of > 0) rate = static_cast<double>(*n) / static_cast<double>(*of);
      }
      if (rate && !(*rate >= 0.0 && *rate <= 1.0))
        throw input_error(cells.where(), "conditional is " + std::to_string(*rate) + "; expected a number in [0, 1]");
      if (rate) s = survived * *rate;
    }
    if (!s) break;  // nothing is known behind here
    window.survival.push_back(survived = *s);
    if (const auto error = cells.number("unconditional_standard_error")) errors.push_back(*error);
  }
  require_survival(window.survival, name, 1e-9);
  merge_windows({window}, name, data);
  if (errors.size() == data.survival.size()) data.survival_error = std::move(errors);
  return data;
}

}  // namespace

bool is_rates_csv(std::string_view text) {
  TextLines lines(text, "");
  if (!lines.next() || lines.line().find_first_of(",;\t") == std::string::npos) return false;
  const CsvTable header = with_our_names(parse_csv(with_commas(lines.line()), ""));
  for (const char* column : {"position", "p1", kLengthColumns[0], kLengthColumns[1], kLengthColumns[2]})
    if (header.column(column) >= 0) return true;
  return false;
}

std::vector<RateRow> read_rate_rows(const CsvTable& table, const std::string& name, const std::string& kind) {
  const CsvTable named = with_our_names(table);
  std::vector<RateRow> rows;
  for (const CsvRow& row : named.rows) rows.push_back(row_of(named, row, name, kind));
  return rows;
}

AcceptanceData read_rates_csv(std::string_view text, const std::string& name, const std::string& kind) {
  const CsvTable table = with_our_names(parse_csv(with_commas(text), name));
  if (table.column("position") >= 0) return read_positions(table, name, kind);
  const std::vector<RateRow> rows = read_rate_rows(table, name, kind);
  if (rows.empty()) throw input_error(name, "has no row; expected one or more");
  AcceptanceData data;
  data.format = "CSV of rates";
  std::vector<AcceptanceWindow> windows;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  bool counts = true;
  for (const RateRow& row : rows) {
    if (row.configuration != rows.front().configuration)
      throw input_error(name + ", line " + std::to_string(row.line),
                        "is of another configuration (" + printable_line(row.configuration) + ") than line " +
                            std::to_string(rows.front().line) + " (" + printable_line(rows.front().configuration) +
                            "); expected rows of one engine, hardware, model, drafter and K");
    windows.push_back(row.window);
    data.notes.insert(data.notes.end(), row.notes.begin(), row.notes.end());
    counts &= row.draft_tokens && row.accepted_tokens;
    drafted += row.draft_tokens.value_or(0);
    accepted += row.accepted_tokens.value_or(0);
  }
  data.draft_len = rows.front().draft_len;
  merge_windows(windows, name, data);
  if (counts) {
    data.draft_tokens = drafted;
    data.accepted_tokens = accepted;
  }
  return data;
}

}  // namespace draftproof
