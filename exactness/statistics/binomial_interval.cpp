#include "exactness/statistics/binomial_interval.hpp"

#include "reference/numerics/boost_math.hpp"

#include <boost/math/distributions/beta.hpp>
#include <string>

#include "base/error.hpp"

namespace draftproof {

Interval clopper_pearson(std::int64_t successes, std::int64_t trials, double level) {
  if (successes < 0 || trials < successes)
    throw usage_error("binomial interval", std::to_string(successes) + " successes in " + std::to_string(trials) +
                                               " trials; expected counts with 0 <= successes <= trials");
  if (!(level > 0.0 && level < 1.0))
    throw usage_error("binomial interval", "the level is " + std::to_string(level) + "; expected a number in (0, 1)");
  const auto s = static_cast<double>(successes);
  const auto f = static_cast<double>(trials - successes);
  const double tail = (1.0 - level) / 2.0;
  // The limits at which so many successes or more, or so many or fewer, have probability `tail`: beta quantiles.
  Interval interval;
  if (successes > 0) interval.low = boost::math::quantile(boost::math::beta_distribution<>(s, f + 1.0), tail);
  if (f > 0.0)
    interval.high = boost::math::quantile(boost::math::complement(boost::math::beta_distribution<>(s + 1.0, f), tail));
  return interval;
}

}  // namespace draftproof
