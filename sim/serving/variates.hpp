// Random variates by address, with the same bits on every machine: logarithms and exponentials are the contract's.
//
//   key     = seed of the workload
//   counter = (attempt, stream, item, Purpose::simulator), rows below those of acceptance_model.hpp
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/numerics/natural_sin_cos.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {

// Variates of an item (a request, a burst); no two share a random word.
enum class VariateStream : std::uint32_t {
  gap = 0,
  prompt_len = 1,
  output_len = 2,
  burst_on = 3,
  burst_off = 4,
  guided = 5
};

struct VariateAddress {
  std::uint64_t seed;
  std::uint64_t item;  // below 2^32
  VariateStream stream;

  RandomBlock block(std::uint32_t attempt = 0) const {
    return PhiloxSource().block(
        seed, {attempt, static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(item), Purpose::simulator});
  }
};

// Uniform in (0, 1).
inline double open_uniform(std::uint64_t bits) {
  return uniform_53(bits) + 0x1p-54;
}

// Mean 1.
inline double exponential_variate(const VariateAddress& address) {
  return -natural_log(open_uniform(high_half(address.block())));
}

// Box and Muller (1958), one of the pair.
inline double normal_of(const RandomBlock& block) {
  const double radius = std::sqrt(-2.0 * natural_log(open_uniform(high_half(block))));
  return radius * natural_sin_cos(2.0 * std::numbers::pi * uniform_53(low_half(block))).cos;
}
inline double normal_variate(const VariateAddress& address) {
  return normal_of(address.block());
}

// Mean 1, squared coefficient of variation 1 / shape. Marsaglia and Tsang, "A simple method for generating gamma
// variables", ACM TOMS 26 (2000); shapes below 1 by their note: Gamma(shape + 1) u^(1 / shape).
inline double gamma_variate(const VariateAddress& address, double shape) {
  const double raised = shape < 1.0 ? shape + 1.0 : shape;
  const double d = raised - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (std::uint32_t attempt = 0;; attempt += 2) {
    const double x = normal_of(address.block(attempt));
    const double v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
    if (v <= 0.0) continue;
    const RandomBlock coins = address.block(attempt + 1);
    if (natural_log(open_uniform(high_half(coins))) >= 0.5 * x * x + d - d * v + d * natural_log(v)) continue;
    const double below_one = shape < 1.0 ? natural_exp(natural_log(open_uniform(low_half(coins))) / shape) : 1.0;
    return d * v * below_one / shape;
  }
}

}  // namespace draftproof
