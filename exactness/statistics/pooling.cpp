#include "exactness/statistics/pooling.hpp"

#include <algorithm>

#include "reference/numerics/natural_log.hpp"

namespace draftproof {

PooledCells::PooledCells(std::span<const double> expected, double expected_min) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] > 0.0) order_.push_back(i);
  }
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return expected[a] < expected[b]; });
  begins_.push_back(0);
  double in_pool = 0.0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    in_pool += expected[order_[i]];
    if (in_pool < expected_min) continue;
    begins_.push_back(i + 1);
    in_pool = 0.0;
  }
  if (begins_.back() == order_.size()) return;
  // The rest joins the last pool, or is the only one.
  if (begins_.size() > 1) begins_.pop_back();
  begins_.push_back(order_.size());
}

std::vector<PoolCount> pool_counts(const PooledCells& pools, std::span<const std::int64_t> observed,
                                   std::span<const double> expected) {
  std::vector<PoolCount> counts(pools.size());
  for (std::size_t i = 0; i < pools.size(); ++i) {
    for (const std::size_t cell : pools.members(i)) {
      counts[i].observed += static_cast<double>(observed[cell]);
      counts[i].expected += expected[cell];
    }
  }
  return counts;
}

double pearson_statistic(std::span<const PoolCount> counts) {
  double sum = 0.0;
  for (const PoolCount& c : counts) sum += (c.observed - c.expected) * (c.observed - c.expected) / c.expected;
  return sum;
}

double g_statistic(std::span<const PoolCount> counts) {
  double sum = 0.0;
  for (const PoolCount& c : counts) {
    if (c.observed > 0.0) sum += c.observed * natural_log(c.observed / c.expected);
  }
  return std::max(0.0, 2.0 * sum);  // below 0 only by rounding
}

double williams_divisor(std::span<const PoolCount> counts) {
  if (counts.size() < 2) return 1.0;
  double n = 0.0;
  double reciprocals = 0.0;
  for (const PoolCount& c : counts) {
    n += c.expected;
    reciprocals += 1.0 / c.expected;
  }
  return 1.0 + (n * reciprocals - 1.0) / (6.0 * n * static_cast<double>(counts.size() - 1));
}

}  // namespace draftproof
