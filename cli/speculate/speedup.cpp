#include "cli/speculate/speedup.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace draftproof {

Speedup estimate_speedup(std::span<const PairedTime> pairs) {
  const auto n = static_cast<double>(pairs.size());
  double sum = 0.0;
  for (const PairedTime& pair : pairs) sum += std::log(pair.plain_ms / pair.speculative_ms);
  const double mean = sum / n;
  Speedup speedup{std::exp(mean), std::nullopt, std::nullopt};
  if (pairs.size() < 2) return speedup;
  double squares = 0.0;
  for (const PairedTime& pair : pairs) {
    const double residual = std::log(pair.plain_ms / pair.speculative_ms) - mean;
    squares += residual * residual;
  }
  const double quantile = boost::math::quantile(boost::math::students_t(n - 1.0), 0.975);
  const double half_width = quantile * std::sqrt(squares / (n - 1.0) / n);
  speedup.low = std::exp(mean - half_width);
  speedup.high = std::exp(mean + half_width);
  return speedup;
}

}  // namespace draftproof
