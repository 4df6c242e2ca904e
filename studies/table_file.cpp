#include "studies/table_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

constexpr std::array kEndings{".tex", ".md", ".csv"};

std::string with_escapes(const std::string& text, std::string_view special) {
  std::string out;
  for (const char c : printable_line(text)) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// A backslash, a tilde and a caret have names in LaTeX; the other special characters are escaped by a backslash.
std::string in_latex(const std::string& text) {
  std::string out;
  for (const char c : with_escapes(text, "")) {
    if (c == '\\')
      out += "\\textbackslash{}";
    else if (c == '~')
      out += "\\textasciitilde{}";
    else if (c == '^')
      out += "\\textasciicircum{}";
    else
      out += with_escapes(std::string(1, c), "&%$#_{}");
  }
  return out;
}

std::string in_markdown(const std::string& text) {
  return with_escapes(text, "|\\*_`<");
}

template <class Escape>
std::string cell_text(const TableCell& cell, const Escape& escape) {
  if (const auto* const text = std::get_if<std::string>(&cell)) return escape(*text);
  if (const auto* const whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  const double value = std::get<double>(cell);
  return std::isfinite(value) ? number("%.4g", value) : "--";
}

template <class Escape>
std::string row_text(const std::vector<TableCell>& row, const char* between, const Escape& escape) {
  std::string line;
  for (const TableCell& cell : row) line += (line.empty() ? "" : between) + cell_text(cell, escape);
  return line;
}

std::vector<TableCell> head_of(const Table& table) {
  return {table.columns.begin(), table.columns.end()};
}

// Numbers stand at the right of their column.
bool is_of_numbers(const Table& table, std::size_t column) {
  return !table.rows.empty() && std::ranges::none_of(table.rows, [&](const std::vector<TableCell>& row) {
    return std::holds_alternative<std::string>(row.at(column));
  });
}

}  // namespace

std::string to_latex(const Table& table, const std::string& caption) {
  std::string columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) columns += is_of_numbers(table, i) ? 'r' : 'l';
  std::string out = "% Needs \\usepackage{booktabs}.\n\\begin{table}\n\\centering\n\\caption{" + in_latex(caption) +
                    "}\n\\begin{tabular}{" + columns + "}\n\\toprule\n" + row_text(head_of(table), " & ", in_latex) +
                    " \\\\\n\\midrule\n";
  for (const std::vector<TableCell>& row : table.rows) out += row_text(row, " & ", in_latex) + " \\\\\n";
  return out + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

std::string to_markdown(const Table& table, const std::string& caption) {
  std::string out = in_markdown(caption) + "\n\n| " + row_text(head_of(table), " | ", in_markdown) + " |\n|";
  for (std::size_t i = 0; i < table.columns.size(); ++i) out += is_of_numbers(table, i) ? "--:|" : "---|";
  out += '\n';
  for (const std::vector<TableCell>& row : table.rows) out += "| " + row_text(row, " | ", in_markdown) + " |\n";
  return out;
}

void require_table_name(const std::string& option, const std::string& path) {
  if (std::ranges::none_of(kEndings, [&](const char* ending) { return path.ends_with(ending); }))
    throw usage_error(option, "is " + in_quotes(path) + "; expected a name that ends with .tex, .md or .csv");
}

void write_table(const std::string& path, const Table& table, const std::string& caption) {
  AtomicFile file(path);
  file.stream() << (path.ends_with(".tex")  ? to_latex(table, caption)
                    : path.ends_with(".md") ? to_markdown(table, caption)
                                            : to_csv(table));
  file.commit();
}

}  // namespace draftproof
