#include "sim/csv.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"

namespace draftproof {

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

int CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
}

CsvTable parse_csv(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  CsvTable table;
  bool has_header = false;
  int line = 1;
  std::size_t at = 0;
  while (at < text.size()) {
    CsvRow row;
    row.line = line;
    std::string field;
    bool quoted = false;
    for (bool row_ends = false; !row_ends; ++at) {
      const bool end = at >= text.size();
      const char c = end ? '\n' : text[at];
      if (quoted && end)
        throw input_error(printable_line(file) + ":" + std::to_string(row.line), "a quote does not end");
      if (c == '\n') ++line;
      if (quoted) {
        if (c != '"') {
          field += c;
        } else if (at + 1 < text.size() && text[at + 1] == '"') {
          field += '"';
          ++at;
        } else {
          quoted = false;
        }
      } else if (c == '"' && without_blanks(field).empty()) {
        field.clear();
        quoted = true;
      } else if (c == ',' || c == '\n') {
        row.fields.emplace_back(without_blanks(field));
        field.clear();
        row_ends = c == '\n';
      } else {
        field += c;
      }
    }
    if (std::all_of(row.fields.begin(), row.fields.end(), [](const std::string& f) { return f.empty(); })) continue;
    if (has_header) {
      table.rows.push_back(std::move(row));
    } else {
      table.columns = std::move(row.fields);
      has_header = true;
    }
  }
  if (!has_header) throw input_error(printable_line(file), "it is empty; expected a line with the names of columns");
  return table;
}

CsvTable read_csv(const std::string& path) {
  return parse_csv(InputFile(path, 256u << 20).text(), path);
}

}  // namespace draftproof
