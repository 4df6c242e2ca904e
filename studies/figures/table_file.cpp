#include "studies/figures/table_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/latex.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

constexpr std::array kEndings{".tex", ".md", ".csv"};

std::string in_markdown(const std::string& text) {
  std::string out;
  for (const char c : printable_line(text)) {
    if (std::string_view("|\\*_`<").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

bool is_empty(const TableCell& cell) {
  const auto* const text = std::get_if<std::string>(&cell);
  return text != nullptr && text->empty();
}

bool is_of_numbers(const Table& table, std::size_t column) {
  return std::ranges::all_of(table.rows,
                             [&](const std::vector<TableCell>& row) {
                               return is_empty(row[column]) || !std::holds_alternative<std::string>(row[column]);
                             }) &&
         !std::ranges::all_of(table.rows, [&](const std::vector<TableCell>& row) { return is_empty(row[column]); });
}

// Decimals of a column of numbers.
int decimals_of(const Table& table, std::size_t column) {
  constexpr int kDigits = 4;
  constexpr int kDecimalsMax = 6;
  double largest = 0.0;
  for (const std::vector<TableCell>& row : table.rows)
    if (const auto* const value = std::get_if<double>(&row[column]); value != nullptr && std::isfinite(*value))
      largest = std::max(largest, std::abs(*value));
  if (largest == 0.0) return 0;
  return std::clamp(kDigits - 1 - static_cast<int>(std::floor(std::log10(largest))), 0, kDecimalsMax);
}

std::string with_decimals(double value, int decimals) {
  return number(("%." + std::to_string(decimals) + "f").c_str(), value);
}

// A number that these decimals show, and not as 0.
bool fits(const TableCell& cell, int decimals) {
  const auto* const value = std::get_if<double>(&cell);
  return value != nullptr && std::isfinite(*value) &&
         (*value == 0.0 || with_decimals(*value, decimals).find_first_of("123456789") != std::string::npos);
}

// Zeros that all of a column's decimals end with, which say nothing.
int spare_zeros(const Table& table, std::size_t column, int decimals) {
  int spare = decimals;
  for (const std::vector<TableCell>& row : table.rows) {
    if (!fits(row[column], decimals)) continue;
    const std::string text = with_decimals(std::get<double>(row[column]), decimals);
    spare = std::min(spare, static_cast<int>(text.size() - 1 - text.find_last_not_of('0')));
  }
  return spare;
}

// Texts of a column, numbers as printf writes them.
std::vector<std::string> texts_of(const Table& table, std::size_t column) {
  const bool of_numbers = is_of_numbers(table, column);
  const int most = decimals_of(table, column);
  const int decimals = most - spare_zeros(table, column, most);
  std::vector<std::string> texts;
  for (const std::vector<TableCell>& row : table.rows) {
    const TableCell& cell = row[column];
    if (const auto* const text = std::get_if<std::string>(&cell)) {
      texts.push_back(text->empty() && of_numbers ? "--" : *text);
    } else if (const auto* const whole = std::get_if<std::int64_t>(&cell)) {
      texts.push_back(std::to_string(*whole));
    } else if (const double value = std::get<double>(cell); !std::isfinite(value)) {
      texts.emplace_back("--");
    } else {
      texts.push_back(fits(cell, most) ? with_decimals(value, decimals) : number("%.1e", value));
    }
  }
  return texts;
}

void require_rectangle(const Table& table) {
  for (const std::vector<TableCell>& row : table.rows)
    if (row.size() != table.columns.size())
      throw Error(
          ErrorKind::internal, "table",
          "a row has " + std::to_string(row.size()) + " cells; expected " + std::to_string(table.columns.size()));
}

std::string heading_of(std::string column) {
  std::ranges::replace(column, '_', ' ');
  return column;
}

// Rows of texts, the header first. cell(text, is_number) writes one.
template <class Cell>
std::vector<std::vector<std::string>> grid_of(const Table& table, const Cell& cell) {
  require_rectangle(table);
  std::vector<std::vector<std::string>> grid(table.rows.size() + 1);
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    grid[0].push_back(cell(heading_of(table.columns[column]), false));
    const std::vector<std::string> texts = texts_of(table, column);
    const bool of_numbers = is_of_numbers(table, column);
    for (std::size_t row = 0; row < texts.size(); ++row)
      grid[row + 1].push_back(
          cell(texts[row], of_numbers || !std::holds_alternative<std::string>(table.rows[row][column])));
  }
  return grid;
}

std::string row_text(const std::vector<std::string>& row, const char* between) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) line += (i == 0 ? "" : between) + row[i];
  return line;
}

// Points that a table takes in \small: what is written there, and the space between columns.
double width_pt(const Table& table) {
  constexpr double kCharacterPt = 4.7;
  constexpr double kBetweenPt = 12.0;
  double width = 0.0;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::size_t longest = table.columns[column].size();
    for (const std::string& text : texts_of(table, column)) longest = std::max(longest, text.size());
    width += static_cast<double>(longest) * kCharacterPt + (column == 0 ? 0.0 : kBetweenPt);
  }
  return width;
}

std::string latex_cell(const std::string& text, bool is_number) {
  if (!is_number) return latex_text(text);
  return text == "--" ? text : latex_number(text);
}

}  // namespace

std::string to_latex(const Table& table, const PaperForm& form) {
  constexpr double kPointsPerInch = 72.27;
  const std::vector<std::vector<std::string>> grid = grid_of(table, latex_cell);
  const double room_pt = kPointsPerInch * inches_of(form.width);
  const bool scaled = form.width != PaperWidth::screen && width_pt(table) > room_pt;
  const std::string environment = form.width == PaperWidth::double_column ? "table*" : "table";
  std::string columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) columns += is_of_numbers(table, i) ? 'r' : 'l';
  std::string out;
  if (!form.program.empty()) out += latex_comment(form.program);
  if (!form.command.empty()) out += latex_comment(form.command);
  out += std::string("% Needs \\usepackage{booktabs}") + (scaled ? " and \\usepackage{graphicx}" : "") + ".\n";
  out += "\\begin{" + environment + "}\n\\centering\\small\n";
  if (!form.caption.empty()) out += "\\caption{" + latex_text(form.caption) + "}\n";
  if (!form.label.empty()) out += "\\label{tab:" + form.label + "}\n";
  if (scaled) out += "\\resizebox{\\linewidth}{!}{%\n";
  out += "\\begin{tabular}{@{}" + columns + "@{}}\n\\toprule\n";
  for (std::size_t row = 0; row < grid.size(); ++row) {
    const std::string line = row_text(grid[row], " & ");
    // Behind the end of a row a bracket or an asterisk would be an argument of it.
    out += (line.starts_with('[') || line.starts_with('*') ? "{}" : "") + line + " \\\\\n";
    if (row == 0) out += "\\midrule\n";
  }
  return out + "\\bottomrule\n\\end{tabular}" + (scaled ? "}" : "") + "\n\\end{" + environment + "}\n";
}

std::string to_markdown(const Table& table, const PaperForm& form) {
  const std::vector<std::vector<std::string>> grid =
      grid_of(table, [](const std::string& text, bool) { return in_markdown(text); });
  std::string out = form.caption.empty() ? "" : in_markdown(form.caption) + "\n\n";
  for (std::size_t row = 0; row < grid.size(); ++row) {
    out += "| " + row_text(grid[row], " | ") + " |\n";
    if (row > 0) continue;
    out += '|';
    for (std::size_t i = 0; i < table.columns.size(); ++i) out += is_of_numbers(table, i) ? "--:|" : "---|";
    out += '\n';
  }
  const char* const between = form.command.empty() || form.program.empty() ? "" : "; ";
  if (!form.command.empty() || !form.program.empty())
    out += "\n" + in_markdown(form.command) + between + in_markdown(form.program) + "\n";
  return out;
}

void require_table_name(const std::string& option, const std::string& path) {
  if (std::ranges::none_of(kEndings, [&](const char* ending) { return path.ends_with(ending); }))
    throw usage_error(option, "is " + in_quotes(path) + "; expected a name that ends with .tex, .md or .csv");
}

void write_table(const std::string& path, const Table& table, const PaperForm& form) {
  AtomicFile file(path);
  file.stream() << (path.ends_with(".tex")  ? to_latex(table, form)
                    : path.ends_with(".md") ? to_markdown(table, form)
                                            : to_csv(table));
  file.commit();
}

}  // namespace draftproof
