#include "sim/cost/measured_row.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "base/strict_number.hpp"

namespace draftproof {

std::optional<double> lenient_number(const std::string& cell) {
  std::string_view rest(cell);
  if (rest.starts_with('~') || rest.starts_with('+')) rest.remove_prefix(1);
  for (const std::string_view suffix : {"\xC3\x97", "x", "X"})  // the sign of multiplication, and what stands for it
    if (rest.ends_with(suffix)) rest.remove_suffix(suffix.size());
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  std::string text = rest.starts_with('.') ? "0" : "";
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != ',') {
      text += rest[i];
      continue;
    }
    // A comma groups thousands, or it is none of a number.
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789", i + 1), rest.size()) - i - 1;
    if (i == 0 || digits != 3) return std::nullopt;
  }
  return read_number(text);
}

std::string MeasuredRow::text(const char* column) const {
  const int index = table_.column(column);
  if (index < 0 || static_cast<std::size_t>(index) >= row_.fields.size()) return "";
  return row_.fields[static_cast<std::size_t>(index)];
}

std::string MeasuredRow::lower(const char* column) const {
  std::string lower = text(column);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::optional<double> MeasuredRow::number(const char* column, double least, double most) const {
  const std::string cell = text(column);
  if (cell.empty() || cell == "-" || lower(column) == "n/a" || lower(column) == "na" || lower(column) == "none")
    return std::nullopt;
  const auto value = lenient_number(cell);
  if (!value) throw RowRefused{std::string(column) + " is not a number", in_quotes(cell)};
  if (!(*value >= least && *value <= most)) throw RowRefused{std::string(column) + " is out of range", in_quotes(cell)};
  return value;
}

}  // namespace draftproof
