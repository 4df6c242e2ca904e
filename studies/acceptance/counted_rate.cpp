#include "studies/acceptance/counted_rate.hpp"

#include <algorithm>
#include <cmath>

namespace draftproof {

double independent_share_of(double rate, double trials, const std::optional<double>& standard_error) {
  if (!standard_error || !(*standard_error > 0.0)) return 1.0;
  return std::min(1.0, rate * (1.0 - rate) / trials / (*standard_error * *standard_error));
}

Interval counted_interval(double rate, double trials, double independent_share, double level) {
  const auto n = std::llround(trials * independent_share);
  return clopper_pearson(std::llround(rate * static_cast<double>(n)), n, level);
}

}  // namespace draftproof
