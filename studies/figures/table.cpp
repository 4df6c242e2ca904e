#include "studies/figures/table.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/csv_text.hpp"
#include "base/error.hpp"

namespace draftproof {
namespace {

struct Text {
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    if (!std::isfinite(value)) return "";
    std::array<char, 32> digits{};
    return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
  }
  std::string operator()(const std::string& value) const { return csv_field(value); }
};

}  // namespace

std::string to_csv(const Table& table) {
  std::string csv;
  const auto append = [&](const std::string& field, bool first) { csv += (first ? "" : ",") + field; };
  for (std::size_t i = 0; i < table.columns.size(); ++i) append(csv_field(table.columns[i]), i == 0);
  csv += '\n';
  for (const std::vector<TableCell>& row : table.rows) {
    if (row.size() != table.columns.size())
      throw Error(
          ErrorKind::internal, "table",
          "a row has " + std::to_string(row.size()) + " cells; expected " + std::to_string(table.columns.size()));
    for (std::size_t i = 0; i < row.size(); ++i) append(std::visit(Text{}, row[i]), i == 0);
    csv += '\n';
  }
  return csv;
}

std::string json_number(double value) {
  return nlohmann::ordered_json(value).dump();
}

}  // namespace draftproof
