// Pooling of cells that expect too little (Cochran's rule), and the two statistics over what is left: Pearson's and the
// likelihood ratio's.
//
// Cells are taken in ascending order of their expectation and joined until the pool holds `expected_min`; what is left
// at the end joins the last pool. Cells that expect nothing are in no pool: one observation there refutes the
// distribution by itself.
//
// How large is large enough? True rates of false alarms over equal cells, by exact convolution, as multiples of the
// level that the chi-squared approximation promises:
//
//                                          level 1e-2   level 1e-6   level 7e-8
//   Pearson, cells expect  5, df 7 / 63   0.92 / 1.01   4.2 / 2.4
//   Pearson, cells expect 25, df 7 / 63   1.01 / 1.00   1.6 / 1.2    2.2 / 1.3
//   G / Williams, 25,         df 7 / 63                 1.0 / 1.0    1.0 / 1.0
//
// So 5 (the usual rule) serves levels down to 1e-3, and an audit at 1e-6 pools to 25.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace draftproof {

inline constexpr double kExpectedCountMin = 5.0;
inline constexpr double kExpectedCountMinOfAudits = 25.0;

class PooledCells {
 public:
  // One pool when all cells together expect less than `expected_min`; none when no cell expects anything.
  PooledCells(std::span<const double> expected, double expected_min);

  std::size_t size() const { return begins_.size() - 1; }
  std::span<const std::size_t> members(std::size_t pool) const {
    return std::span(order_).subspan(begins_[pool], begins_[pool + 1] - begins_[pool]);
  }

 private:
  std::vector<std::size_t> order_;
  std::vector<std::size_t> begins_;
};

struct PoolCount {
  double observed = 0.0;
  double expected = 0.0;
};

// Sums over the members, in the order of the pools. `observed` and `expected` are over all cells.
std::vector<PoolCount> pool_counts(const PooledCells& pools, std::span<const std::int64_t> observed,
                                   std::span<const double> expected);

// sum (O - E)^2 / E.
double pearson_statistic(std::span<const PoolCount> counts);

// G = 2 sum O ln(O / E); a pool without observations adds 0. The sums of observed and expected must agree.
double g_statistic(std::span<const PoolCount> counts);

// Williams's divisor 1 + (n sum 1/E - 1) / (6 n df), df = pools - 1: G divided by it has the mean of the chi-squared
// distribution up to terms of order 1/E^2.
double williams_divisor(std::span<const PoolCount> counts);

}  // namespace draftproof
