#include "exactness/parity/rank_tests.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>

namespace draftproof {
namespace {

double upper_tail(double z) {
  return 0.5 * std::erfc(z / std::numbers::sqrt2);
}

}  // namespace

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t k = begin; k < end; ++k) ranks[order[k]] = static_cast<double>(begin + end + 1) / 2.0;
    begin = end;
  }
  return ranks;
}

double group_is_greater(std::span<const double> values, const std::vector<bool>& in_group) {
  const std::vector<double> ranks = ranks_of(values);
  const auto n = static_cast<double>(values.size());
  const auto m = static_cast<double>(std::ranges::count(in_group, true));
  double sum = 0.0;
  double squares = 0.0;  // of ranks about their mean: ties make it less
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (in_group[i]) sum += ranks[i];
    squares += (ranks[i] - (n + 1.0) / 2.0) * (ranks[i] - (n + 1.0) / 2.0);
  }
  if (m < 1.0 || m > n - 1.0 || !(squares > 0.0)) return 1.0;
  const double variance = m * (n - m) / (n * (n - 1.0)) * squares;
  return upper_tail((sum - m * (n + 1.0) / 2.0) / std::sqrt(variance));
}

double grows_along(std::span<const double> values, std::span<const double> along) {
  const std::vector<double> a = ranks_of(values);
  const std::vector<double> b = ranks_of(along);
  const double mean = (static_cast<double>(values.size()) + 1.0) / 2.0;
  double both = 0.0, of_a = 0.0, of_b = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    of_a += (a[i] - mean) * (a[i] - mean);
    of_b += (b[i] - mean) * (b[i] - mean);
  }
  if (!(of_a > 0.0 && of_b > 0.0)) return 1.0;
  return upper_tail(both / std::sqrt(of_a * of_b) * std::sqrt(static_cast<double>(values.size()) - 1.0));
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const std::size_t half = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(half));
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half))) / 2.0;
}

}  // namespace draftproof
