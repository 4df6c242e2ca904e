// Statistical decisions of tests, all under the one budget of false alarms that the suite has (battery.hpp): each takes
// suite_level(decisions), where `decisions` is how many its test case makes on code that is right. A faulty variant is
// found by the same question, to be answered no. What was computed is shown where the next assertion fails.
#pragma once

#include "reference/numerics/boost_math.hpp"

#include <boost/math/distributions/normal.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <span>

#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/binomial_interval.hpp"
#include "exactness/statistics/chi_squared.hpp"

namespace draftproof {

inline bool passes(const ChiSquaredTest& test, int decisions = 1) {
  UNSCOPED_INFO("chi-squared " << test.statistic << " on " << test.df << " degrees of freedom, p = " << test.p_value
                               << (test.impossible_cell ? ", and impossible cells" : "") << "; level "
                               << suite_level(decisions));
  return !test.rejects(suite_level(decisions));
}

// Are `counts` [cells] a sample of `distribution` [cells]? Cells are pooled as audits pool them, for levels as low as
// these.
inline bool follows(std::span<const std::int64_t> counts, std::span<const double> distribution, int decisions = 1) {
  return passes(goodness_of_fit(counts, distribution, kExpectedCountMinOfAudits), decisions);
}

// The rates that `successes` of `trials` leave possible.
inline Interval possible_rates(std::int64_t successes, std::int64_t trials, int decisions = 1) {
  const Interval interval = clopper_pearson(successes, trials, 1.0 - suite_level(decisions));
  UNSCOPED_INFO(successes << " of " << trials << ": a rate in [" << interval.low << ", " << interval.high << "]");
  return interval;
}

// Trials may have rates of their own, where `rate` is their mean: such a count varies less than a binomial one.
inline bool has_rate(std::int64_t successes, std::int64_t trials, double rate, int decisions = 1) {
  const Interval interval = possible_rates(successes, trials, decisions);
  UNSCOPED_INFO("expected " << rate);
  return interval.low <= rate && rate <= interval.high;
}

// Is the mean of n independent values, of standard deviation `deviation` or less, the expected one? By the normal
// distribution, which is good enough for what is asked here: values that are bounded by a few deviations, and n of
// thousands, for which it is right to within a small factor at six standard errors.
inline bool has_mean(double mean, double expected, double deviation, std::int64_t n, int decisions = 1) {
  const double quantile =
      boost::math::quantile(boost::math::complement(boost::math::normal(), suite_level(decisions) / 2.0));
  const double margin = quantile * deviation / std::sqrt(static_cast<double>(n));
  UNSCOPED_INFO("a mean of " << mean << " where " << expected << " is expected, within " << margin);
  return std::abs(mean - expected) <= margin;
}

}  // namespace draftproof
