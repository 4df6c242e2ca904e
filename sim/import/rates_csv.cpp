#include "sim/import/rates_csv.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/import/markdown_table.hpp"
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
      {"rate",
       {"acceptance_rate", "acceptance", "p", "per_position_acceptance_rate", "accept_rate", "aggregate_accept_rate",
        "accept", "avg_draft_acceptance", "draft_acceptance_rate"}},
      {"rate_kind", {"kind", "type"}},
      {"accepted", {"accepted_tokens", "num_accepted"}},
      {"drafted", {"drafted_tokens", "draft_tokens", "proposed"}},
      {"drafts", {"num_drafts", "draft_steps", "rounds", "cycles", "verify_steps"}},
      {"mean_acceptance_length",
       {"mean_accept_length", "accept_length", "accept_len", "a.len", "tok/cycle", "mtp_tok/cycle",
        "tokens_per_round"}},
      {"K", {"n_max", "spec_draft_n_max", "num_speculative_tokens", "num_spec_tokens", "draft_max"}},
      {"rates_by_position", {"pos_accept"}},
  };
  return names;
}

std::string plain_name(std::string name) {
  for (char& c : name) c = c == ' ' || c == '-' ? '_' : lower_case(c);
  return name;
}

// The number of "pos 2", "position_2" or "pos2"; nothing of other columns.
std::optional<std::int64_t> position_of(std::string_view plain) {
  for (const std::string_view word : {"position", "pos"}) {
    if (!plain.starts_with(word)) continue;
    plain.remove_prefix(word.size());
    if (plain.starts_with('_')) plain.remove_prefix(1);
    return read_integer(plain, 0, kAcceptanceDepthMax);
  }
  return std::nullopt;
}

// The table with our names for its columns, where it has not both. K stays as it is. Positions count from 1.
CsvTable with_our_names(CsvTable table) {
  const bool from_0 =
      std::ranges::any_of(table.columns, [](const std::string& c) { return position_of(plain_name(c)) == 0; });
  for (std::string& column : table.columns) {
    const std::string plain = plain_name(column);
    if (const auto position = position_of(plain)) {
      column = "p" + std::to_string(*position + (from_0 ? 1 : 0));
      continue;
    }
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
    if (cell.empty() || cell == "-" || has_words(cell, "nan") || has_words(cell, "n/a")) return std::nullopt;
    const bool percent = cell.ends_with('%');
    if (percent) cell.pop_back();
    const auto value = read_number(cell);
    if (!value)
      throw input_error(where_, std::string(column) + " is " + in_quotes(text(column)) + "; expected a number");
    return percent ? *value / 100.0 : *value;
  }
  // "90.5% 80.5% 73.6%".
  std::vector<double> list(std::string_view column) const {
    const std::string cell = text(column);
    return cell.empty() ? std::vector<double>() : list_field("rates: " + cell, "rates", where_);
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

// "538/660", or accepted beside drafted.
void set_tokens(const Cells& cells, RateRow& row) {
  const std::string text = cells.text("accepted");
  const std::size_t slash = text.find('/');
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  row.accepted_tokens = read_integer(without_blanks(std::string_view(text).substr(0, slash)), 0, kMost);
  row.draft_tokens = slash == std::string::npos
                         ? cells.count("drafted")
                         : read_integer(without_blanks(std::string_view(text).substr(slash + 1)), 0, kMost);
  if (!row.draft_tokens || !row.accepted_tokens) {
    row.draft_tokens.reset(), row.accepted_tokens.reset();
    return;
  }
  if (*row.accepted_tokens > *row.draft_tokens)
    throw input_error(cells.where(), "accepted is " + in_quotes(text) + " of " + std::to_string(*row.draft_tokens) +
                                         "; expected at most the drafted tokens");
  const auto* steps = std::get_if<Steps>(&row.window.size);
  if (steps == nullptr && row.draft_len > 0) {
    row.window.size = Steps((*row.draft_tokens + row.draft_len - 1) / row.draft_len);
    steps = std::get_if<Steps>(&row.window.size);
  }
  if (steps != nullptr && steps->count > 0)
    row.window.acceptance_length = 1.0 + static_cast<double>(*row.accepted_tokens) / static_cast<double>(steps->count);
}

RateRow row_of(const CsvTable& table, const CsvRow& csv, const std::string& name, const std::string& told) {
  const Cells cells(table, csv, name);
  RateRow row;
  row.line = csv.line;
  row.window.where = cells.where();
  for (const char* column : {"engine", "hardware", "target_model", "draft_method", "draft_model", "K"})
    if (const std::string cell = cells.text(column); !cell.empty())
      row.configuration.append(row.configuration.empty() ? "" : ", ").append(*column == 'K' ? "K = " : "").append(cell);
  std::vector<double> rates = cells.list("rates_by_position");
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
  if (!row.draft_tokens && !row.accepted_tokens) set_tokens(cells, row);
  // Accepted of drafted tokens, where all drafts have K.
  if (rates.empty() && !row.window.acceptance_length && row.draft_len > 0)
    if (const auto rate = cells.number("rate")) {
      if (!(*rate >= 0.0 && *rate <= 1.0))
        throw input_error(cells.where(), "rate is " + in_quotes(cells.text("rate")) + "; expected a number in [0, 1]");
      row.window.acceptance_length = 1.0 + static_cast<double>(row.draft_len) * *rate;
    }
  if (rates.empty()) {
    if (!row.window.acceptance_length)
      throw input_error(cells.where(),
                        std::string("has neither p1 nor an acceptance length; expected one or the other, or accepted "
                                    "drafts with K: ") +
                            kSayDrafts);
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
                        "unconditional in a column rate_kind, or --rates (predict: --metrics-rates)");
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
                      "unconditional, or accepted with steps; or --rates (predict: --metrics-rates)");
  AcceptanceData data;
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

// Columns that say an acceptance: rates, a length, or accepted drafts beside what they are of.
bool says_rates(const CsvTable& table) {
  const CsvTable header = with_our_names(table);
  const auto has = [&](const char* column) { return header.column(column) >= 0; };
  return has("p1") || has("rates_by_position") || std::ranges::any_of(kLengthColumns, has) ||
         (has("K") && has("rate")) || (has("accepted") && (has("drafts") || has("drafted") || has("K")));
}

// Rows of one configuration.
AcceptanceData of_rows(const std::vector<RateRow>& rows, const std::string& name, const std::string& choice) {
  AcceptanceData data;
  data.takes_choice = true;
  std::vector<std::string> names;
  for (const RateRow& row : rows)
    if (std::ranges::find(names, row.configuration) == names.end()) names.push_back(row.configuration);
  const auto is_chosen = [&](const std::string& of) {
    return choice.empty() || of == choice || of == "K = " + choice || of.ends_with(", K = " + choice);
  };
  const std::int64_t chosen = std::ranges::count_if(names, is_chosen);
  if (chosen != 1)
    throw input_error(name, (chosen == 0 ? "has no rows of " + in_quotes(choice)
                                         : "has rows of several configurations (" + first_names(names) + ")") +
                                "; expected one" +
                                (chosen == 0 ? " of " + first_names(names) : std::string(", chosen by its name")));
  std::vector<AcceptanceWindow> windows;
  std::int64_t drafted = 0, accepted = 0;
  bool counts = true;
  for (const RateRow& row : rows) {
    if (!is_chosen(row.configuration)) continue;
    windows.push_back(row.window);
    data.notes.insert(data.notes.end(), row.notes.begin(), row.notes.end());
    data.draft_len = std::max(data.draft_len, row.draft_len);
    counts &= row.draft_tokens && row.accepted_tokens;
    drafted += row.draft_tokens.value_or(0);
    accepted += row.accepted_tokens.value_or(0);
  }
  merge_windows(windows, name, data);
  if (!counts) return data;
  data.draft_tokens = drafted;
  data.accepted_tokens = accepted;
  if (data.draft_len == 0 && data.drafts)
    set_least_draft_len(data, static_cast<double>(drafted), static_cast<double>(*data.drafts));
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

AcceptanceData read_rates_csv(std::string_view text, const std::string& name, const std::string& kind,
                              const std::string& choice) {
  const CsvTable table = with_our_names(parse_csv(with_commas(text), name));
  AcceptanceData data;
  if (table.column("position") >= 0) {
    data = read_positions(table, name, kind);
  } else {
    const std::vector<RateRow> rows = read_rate_rows(table, name, kind);
    if (rows.empty()) throw input_error(name, "has no row; expected one or more");
    data = of_rows(rows, name, choice);
  }
  data.format = "CSV of rates";
  return data;
}

bool is_rates_table(std::string_view text) {
  return !markdown_table(text, says_rates).rows.empty();
}

AcceptanceData read_rates_table(std::string_view text, const std::string& name, const std::string& kind,
                                const std::string& choice, std::int32_t drafts) {
  CsvTable table = with_our_names(markdown_table(text, says_rates));
  // Prompts, and numbers, are samples of one configuration; what else stands first names one.
  constexpr std::string_view kSamples[] = {"task",     "prompt",      "round", "run",     "dataset",
                                           "category", "prompt_type", "test",  "request", "benchmark"};
  const bool is_sample =
      std::ranges::any_of(kSamples, [&](std::string_view of) { return table.columns.front() == of; });
  const auto begins_with_digit = [](const CsvRow& row) {
    return !row.fields.empty() && !row.fields.front().empty() && row.fields.front().front() >= '0' &&
           row.fields.front().front() <= '9';
  };
  if (!is_sample && table.column("engine") < 0 && table.columns.front() != "K" &&
      std::ranges::none_of(table.rows, begins_with_digit))
    table.columns.front() = "engine";
  if (drafts > 0 && table.column("K") < 0) {
    for (CsvRow& row : table.rows) {
      row.fields.resize(table.columns.size());
      row.fields.push_back(std::to_string(drafts));
    }
    table.columns.emplace_back("K");
  }
  std::erase_if(table.rows, [&](const CsvRow& row) {
    const Cells cells(table, row, name);
    const std::string first = row.fields.empty() ? "" : lower_case(row.fields.front());
    for (const char* mean : {"average", "mean", "total", "overall", "aggregate", "all"})
      if (first == mean) return true;
    return std::ranges::none_of(
        std::initializer_list<const char*>{"p1", "rates_by_position", kLengthColumns[0], kLengthColumns[1],
                                           kLengthColumns[2], "rate", "accepted"},
        [&](const char* column) {
          const std::string cell = cells.text(column);
          return !cell.empty() && cell != "-" && !has_words(cell, "n/a");
        });
  });
  const std::vector<RateRow> rows = read_rate_rows(table, name, kind);
  if (rows.empty()) throw input_error(name, "has no row with a rate or a length; expected one or more");
  AcceptanceData data = of_rows(rows, name, choice);
  data.format = "table of rates";
  return data;
}

}  // namespace draftproof
