#include "exactness/statistics/chi_squared.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_chi_squared.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace draftproof {
namespace {

void check_counts(std::span<const std::int64_t> counts, std::size_t cells) {
  if (counts.size() != cells)
    throw usage_error("chi-squared test", "there are " + std::to_string(counts.size()) + " counts and " +
                                              std::to_string(cells) + " cells; they must agree");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0)
      throw usage_error("chi-squared test",
                        "count " + std::to_string(i) + " is negative: " + std::to_string(counts[i]));
  }
}

std::int64_t sum_of(std::span<const std::int64_t> counts) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  return sum;
}

double term(double observed, double expected) {
  return (observed - expected) * (observed - expected) / expected;
}

void conclude(ChiSquaredTest& test, std::size_t cells) {
  test.cells = static_cast<std::int64_t>(cells);
  test.df = std::max<std::int64_t>(0, test.cells - 1);
  // With one cell the statistic is rounding alone.
  if (test.df == 0) test.statistic = 0.0;
  test.p_value = chi_squared_p_value(test.statistic, test.df);
}

struct Fit {
  ChiSquaredTest test;  // without the statistic
  std::vector<PoolCount> counts;
};

Fit pooled_fit(std::span<const std::int64_t> observed, std::span<const double> probability, double expected_min) {
  check_counts(observed, probability.size());
  double probability_sum = 0.0;
  for (const double p : probability) {
    if (!(p >= 0.0 && p <= 1.0))
      throw usage_error("chi-squared test", "a probability is " + std::to_string(p) + "; it must lie in [0, 1]");
    probability_sum += p;
  }
  if (!(std::abs(probability_sum - 1.0) < 1e-3))
    throw usage_error("chi-squared test",
                      "the probabilities sum to " + std::to_string(probability_sum) + "; they must sum to 1");
  Fit fit;
  fit.test.n = sum_of(observed);
  std::vector<double> expected(probability.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<double>(fit.test.n) * probability[i];
    if (probability[i] > 0.0 || observed[i] == 0) continue;
    if (!fit.test.impossible_cell) fit.test.impossible_cell = i;
    fit.test.impossible_count += observed[i];
  }
  fit.counts = pool_counts(PooledCells(expected, expected_min), observed, expected);
  return fit;
}

}  // namespace

ChiSquaredTest goodness_of_fit(std::span<const std::int64_t> observed, std::span<const double> probability,
                               double expected_min) {
  Fit fit = pooled_fit(observed, probability, expected_min);
  fit.test.statistic = pearson_statistic(fit.counts);
  conclude(fit.test, fit.counts.size());
  return fit.test;
}

ChiSquaredTest two_sample_test(std::span<const std::int64_t> first, std::span<const std::int64_t> second) {
  check_counts(first, first.size());
  check_counts(second, first.size());
  const std::int64_t first_n = sum_of(first);
  const std::int64_t second_n = sum_of(second);
  if (first_n == 0 || second_n == 0)
    throw usage_error("chi-squared test", "a sample is empty; both must have at least one observation");
  ChiSquaredTest test;
  test.n = first_n + second_n;
  const double first_share = static_cast<double>(first_n) / static_cast<double>(test.n);
  const double second_share = static_cast<double>(second_n) / static_cast<double>(test.n);
  // The smaller sample has the smaller expectations.
  std::vector<double> expected(first.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    expected[i] = static_cast<double>(first[i] + second[i]) * std::min(first_share, second_share);
  const PooledCells pools(expected, kExpectedCountMin);
  for (std::size_t i = 0; i < pools.size(); ++i) {
    std::int64_t in_first = 0;
    std::int64_t in_second = 0;
    for (const std::size_t cell : pools.members(i)) {
      in_first += first[cell];
      in_second += second[cell];
    }
    const auto both = static_cast<double>(in_first + in_second);
    test.statistic += term(static_cast<double>(in_first), both * first_share);
    test.statistic += term(static_cast<double>(in_second), both * second_share);
  }
  conclude(test, pools.size());
  return test;
}

double chi_squared_p_value(double statistic, std::int64_t df) {
  if (df == 0) return 1.0;
  const boost::math::chi_squared distribution(static_cast<double>(df));
  return boost::math::cdf(boost::math::complement(distribution, statistic));
}

double chi_squared_noncentrality(std::int64_t df, double alpha, double power) {
  const auto degrees = static_cast<double>(df);
  const double critical = boost::math::quantile(boost::math::complement(boost::math::chi_squared(degrees), alpha));
  return boost::math::non_central_chi_squared::find_non_centrality(degrees, critical, 1.0 - power);
}

double detectable_total_variation(double effective_n, std::int64_t df, double alpha, double power) {
  if (df == 0) return 1.0;
  return std::min(1.0, std::sqrt(chi_squared_noncentrality(df, alpha, power) / (4.0 * effective_n)));
}

}  // namespace draftproof
