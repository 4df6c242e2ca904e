// One row of a CSV file of measured speedups: cells by name, and numbers as people write them.
#pragma once

#include <optional>
#include <string>

#include "sim/csv.hpp"

namespace draftproof {

// Why a row cannot be used.
struct RowRefused {
  std::string reason;
  std::string detail;
};

// "2.1", "2.1x", "~2.1", "1,024": a finite number; nothing for any other text.
std::optional<double> lenient_number(const std::string& text);

class MeasuredRow {
 public:
  MeasuredRow(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  int line() const { return row_.line; }
  // Empty where there is no such column, or the row is too short.
  std::string text(const char* column) const;
  std::string lower(const char* column) const;
  // Nothing for an empty cell. Throws RowRefused for text that is no number, and for one outside [least, most].
  std::optional<double> number(const char* column, double least, double most) const;

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

}  // namespace draftproof
