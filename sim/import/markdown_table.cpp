#include "sim/import/markdown_table.hpp"

#include <algorithm>
#include <iterator>

#include "base/split.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  const std::size_t first = line.find('|'), last = line.rfind('|');
  if (first == last || line.find_first_not_of(" >\t") != first) return cells;
  for (const std::string_view part : split(line.substr(first + 1, last - first - 1), '|')) {
    std::string cell;
    std::copy_if(part.begin(), part.end(), std::back_inserter(cell), [](char c) { return c != '*' && c != '`'; });
    cells.emplace_back(without_blanks(cell));
  }
  return cells;
}

bool is_rule(const std::vector<std::string>& cells) {
  return std::ranges::all_of(cells, [](const std::string& cell) {
    return !cell.empty() && cell.find_first_not_of(":- ") == std::string::npos;
  });
}

}  // namespace

CsvTable markdown_table(std::string_view text, const std::function<bool(const CsvTable& header)>& wanted) {
  TextLines lines(text, "");
  std::vector<std::string> before;
  while (lines.next()) {
    std::vector<std::string> cells = cells_of(lines.line());
    if (cells.empty() || !is_rule(cells) || before.size() != cells.size()) {
      before = std::move(cells);
      continue;
    }
    CsvTable table{std::move(before), {}};
    before.clear();
    std::vector<bool> percent, with_spread;
    for (std::string& column : table.columns) {
      constexpr std::string_view kSpread = "mean/std";
      with_spread.push_back(column.ends_with(kSpread));
      if (with_spread.back()) column.resize(column.size() - kSpread.size());
      percent.push_back(column.find('%') != std::string::npos);
      std::erase_if(column, [](char c) { return c == '%'; });
      if (column.ends_with("()")) column.resize(column.size() - 2);
      column = without_blanks(std::string(column));
    }
    if (!wanted(table)) continue;
    while (lines.next()) {
      CsvRow row{static_cast<int>(lines.number()), cells_of(lines.line())};
      if (row.fields.empty()) return table;
      for (std::size_t i = 0; i < std::min(row.fields.size(), percent.size()); ++i) {
        if (with_spread[i]) row.fields[i].resize(std::min(row.fields[i].find('/'), row.fields[i].size()));
        if (percent[i] && !row.fields[i].empty() && row.fields[i].back() >= '0' && row.fields[i].back() <= '9')
          row.fields[i] += '%';
      }
      table.rows.push_back(std::move(row));
    }
    return table;
  }
  return {};
}

}  // namespace draftproof
