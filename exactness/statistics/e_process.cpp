#include "exactness/statistics/e_process.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>

#include "reference/numerics/natural_log.hpp"

namespace draftproof {

double dirichlet_log_wealth(std::span<const std::int64_t> counts, std::span<const double> distribution,
                            double concentration) {
  const auto log_gamma = [](double x) { return boost::math::lgamma(x); };
  std::int64_t n = 0;
  double log_wealth = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    if (!(distribution[i] > 0.0)) return std::numeric_limits<double>::infinity();
    const auto count = static_cast<double>(counts[i]);
    const double prior = concentration * distribution[i];
    log_wealth += log_gamma(prior + count) - log_gamma(prior) - count * natural_log(distribution[i]);
    n += counts[i];
  }
  return log_wealth - (log_gamma(concentration + static_cast<double>(n)) - log_gamma(concentration));
}

}  // namespace draftproof
