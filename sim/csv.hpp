// A CSV file with a header, as spreadsheets and programs write it: quoted fields may hold commas, quotes and line ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

struct CsvRow {
  int line = 0;                     // where it begins, from 1
  std::vector<std::string> fields;  // without blanks around them
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;  // blank lines are left out; a row may have fewer or more fields than columns

  // Where a column stands, or -1.
  int column(std::string_view name) const;
};

// The text without blanks and tabs around it, and without the \r of a line end.
std::string_view without_blanks(std::string_view text);

// A file of at most 256 MiB. Input error where it has no header, or where a quote does not end.
CsvTable read_csv(const std::string& path);
// The same of a text that messages call `file`.
CsvTable parse_csv(std::string_view text, const std::string& file);

}  // namespace draftproof
