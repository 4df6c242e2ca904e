// Pearson's chi-squared tests: a sample against a known distribution, and two samples against each other.
//
// Cells that expect too little are pooled (pooling.hpp). A cell that the distribution gives probability 0 has no
// expectation to compare with: one observation there refutes the distribution by itself, whatever the rest says.
//
// Everything up to the statistic is made of + - * / on doubles in one fixed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "exactness/statistics/pooling.hpp"

namespace draftproof {

struct ChiSquaredTest {
  std::int64_t n = 0;      // observations: of the sample, or of both samples together
  std::int64_t cells = 0;  // after pooling
  std::int64_t df = 0;     // cells - 1
  double statistic = 0.0;
  double p_value = 1.0;                        // 1 where df is 0: there is nothing to tell apart
  std::optional<std::size_t> impossible_cell;  // lowest observed cell of probability 0
  std::int64_t impossible_count = 0;           // observations in all such cells

  bool rejects(double alpha) const { return impossible_cell.has_value() || p_value < alpha; }
};

// Is `observed` [cells] a sample of `probability` [cells]? The statistic is taken over the cells of positive
// probability. Errors (usage): lengths that differ, a negative count, a probability that is not in [0, 1],
// probabilities that do not sum to 1 within 1e-3.
ChiSquaredTest goodness_of_fit(std::span<const std::int64_t> observed, std::span<const double> probability,
                               double expected_min = kExpectedCountMin);

// Do two samples [cells] come from one distribution, unknown? The expected counts are those of the pooled samples,
// given the sizes. Errors (usage): lengths that differ, a negative count, an empty sample.
ChiSquaredTest two_sample_test(std::span<const std::int64_t> first, std::span<const std::int64_t> second);

// P(X > statistic) of the chi-squared distribution with df degrees of freedom; 1 for df = 0.
double chi_squared_p_value(double statistic, std::int64_t df);

// The non-centrality at which a test of level alpha rejects with probability `power`.
double chi_squared_noncentrality(std::int64_t df, double alpha, double power);

// The total variation distance (over the pooled cells) from which such a test finds a fault with probability `power`,
// whatever the fault looks like: lambda = n sum (p' - p)^2 / p >= 4 n TV^2. For two samples of n each, the effective n
// is n / 2. 1 where df is 0.
double detectable_total_variation(double effective_n, std::int64_t df, double alpha, double power);

}  // namespace draftproof
