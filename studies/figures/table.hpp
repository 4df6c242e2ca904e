// Rows of a panel, for export.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace draftproof {

using TableCell = std::variant<std::int64_t, double, std::string>;

struct Table {
  std::vector<std::string> columns;  // with their unit, as "draft_ms"
  std::vector<std::vector<TableCell>> rows;
};

// CSV (RFC 4180) with a header; numbers in the shortest form that reads back as the same number. A number that is not
// finite is an empty field. Internal error for a row of another length than the header.
std::string to_csv(const Table& table);

// The shortest form that reads back as the same number, as JSON writes it.
std::string json_number(double value);

}  // namespace draftproof
