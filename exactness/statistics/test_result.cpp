#include "exactness/statistics/test_result.hpp"

#include <algorithm>
#include <limits>

#include "reference/numerics/natural_log.hpp"

namespace draftproof {

std::string CountedCell::label() const {
  std::string text;
  for (const auto& [name, value] : keys)
    text.append(text.empty() ? "" : ", ").append(name).append(" ").append(std::to_string(value));
  return text;
}

double surprise(const CountedCell& cell) {
  if (!(cell.expected > 0.0)) return cell.observed > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
  const double likelihood = cell.observed > 0.0 ? cell.observed * natural_log(cell.observed / cell.expected) : 0.0;
  return 2.0 * (likelihood - (cell.observed - cell.expected));
}

void keep_worst(std::vector<CountedCell>& cells) {
  std::stable_sort(cells.begin(), cells.end(),
                   [](const CountedCell& a, const CountedCell& b) { return surprise(a) > surprise(b); });
  if (cells.size() > kWorstCellsMax) cells.resize(kWorstCellsMax);
}

const TestResult* worst_test(std::span<const TestResult> tests) {
  const TestResult* worst = nullptr;
  for (const TestResult& test : tests) {
    if (test.worst_cells.empty()) continue;
    if (worst == nullptr || test.p_value < worst->p_value) worst = &test;
  }
  return worst;
}

}  // namespace draftproof
