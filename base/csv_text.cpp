#include "base/csv_text.hpp"

#include "base/strict_number.hpp"

namespace draftproof {

std::string csv_field(std::string_view text) {
  if (text.empty()) return "";
  const bool is_formula = std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  std::string field = (is_formula && !read_number(text) ? "'" : "") + std::string(text);
  if (field.find_first_of(",\"\r\n") == std::string::npos && field.front() != ' ' && field.back() != ' ') return field;
  for (std::size_t at = 0; (at = field.find('"', at)) != std::string::npos; at += 2) field.insert(at, 1, '"');
  return "\"" + field + "\"";
}

}  // namespace draftproof
