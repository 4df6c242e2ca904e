// Pearson's chi-squared test of counts against a law, for tests with fixed seeds: a threshold of p > 1e-6 is then not
// a false-alarm rate but a statement about these seeds, while a bias of a few standard errors falls far below it.
#pragma once

#include <boost/math/distributions/chi_squared.hpp>
#include <cstdint>
#include <vector>

namespace draftproof {

// The p-value. Outcomes with an expected count below 5 are pooled into one bin; an impossible outcome that was counted
// gives 0.
inline double chi_squared_p_value(const std::vector<std::int64_t>& counts, const std::vector<double>& law) {
  double n = 0.0;
  for (const std::int64_t c : counts) n += static_cast<double>(c);
  double statistic = 0.0;
  double pooled_count = 0.0;
  double pooled_expected = 0.0;
  int bins = 0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++bins;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    const double expected = n * law[i];
    if (law[i] <= 0.0) {
      if (counts[i] > 0) return 0.0;
    } else if (expected < 5.0) {
      pooled_count += count;
      pooled_expected += expected;
    } else {
      add(count, expected);
    }
  }
  if (pooled_expected > 0.0) add(pooled_count, pooled_expected);
  if (bins < 2) return 1.0;
  return boost::math::cdf(boost::math::complement(boost::math::chi_squared(bins - 1), statistic));
}

}  // namespace draftproof
