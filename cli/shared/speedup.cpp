#include "cli/shared/speedup.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace draftproof {

PairedTime paired_time(const DecodedTime& plain, const DecodedTime& speculative) {
  const DecodedTime& rate = speculative.tokens > 0 ? speculative : plain;
  const double ms_per_token = rate.ms / static_cast<double>(std::max<std::int64_t>(rate.tokens, 1));
  const std::int64_t tokens = std::max<std::int64_t>(plain.prompt_tokens + plain.tokens, 1);
  const std::int64_t behind_prompts = std::max<std::int64_t>(tokens - speculative.prompt_tokens, 0);
  return {(plain.prompt_ms + plain.ms) / static_cast<double>(tokens),
          (speculative.prompt_ms + ms_per_token * static_cast<double>(behind_prompts)) / static_cast<double>(tokens)};
}

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
