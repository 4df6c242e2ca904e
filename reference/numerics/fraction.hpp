// Limits as fractions of integer masses, exact: the float that a caller gave is a dyadic rational, and is taken as one.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "reference/numerics/unsigned_128.hpp"

namespace draftproof {

// ceil(fraction * total). fraction in [0, 1].
DRAFTPROOF_HD inline std::uint64_t ceil_of_fraction(float fraction, std::uint64_t total) {
  if (fraction == 0.0f || total == 0) return 0;
  const std::uint32_t bits = bit_cast<std::uint32_t>(fraction);
  const std::uint32_t exponent = bits >> 23;  // 0: a subnormal, which has no hidden bit
  const std::uint64_t digits = (bits & 0x7fffffu) | (exponent == 0 ? 0u : 0x800000u);
  const std::uint32_t shift = exponent == 0 ? 149u : 150u - exponent;  // fraction = digits 2^-shift
  if (shift >= 88) return 1;                                           // the product is below 2^88
  const Unsigned128 product = static_cast<Unsigned128>(digits) * total;
  const Unsigned128 ones = (static_cast<Unsigned128>(1) << shift) - 1;
  return static_cast<std::uint64_t>((product + ones) >> shift);
}

// ceil(numerator / denominator * total), numerator <= denominator.
inline std::uint64_t ceil_of_fraction(std::uint32_t numerator, std::uint32_t denominator, std::uint64_t total) {
  return static_cast<std::uint64_t>((static_cast<Unsigned128>(numerator) * total + (denominator - 1)) / denominator);
}

}  // namespace draftproof
