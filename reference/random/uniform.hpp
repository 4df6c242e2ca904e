// Uniform numbers and Gumbel noise from random words. Each function says its range, since that is where engines differ.
#pragma once

#include <cstdint>

#include "reference/numerics/natural_log.hpp"
#include "reference/numerics/unsigned_128.hpp"

namespace draftproof {

// [0, 1) with 53 bits; exact.
DRAFTPROOF_HD inline double uniform_53(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// floor(r n / 2^64): an integer in [0, n), each hit by its share of the 2^64 values of r to within one.
DRAFTPROOF_HD inline std::uint64_t multiply_high(std::uint64_t r, std::uint64_t n) {
  return static_cast<std::uint64_t>((static_cast<Unsigned128>(r) * n) >> 64);
}

// Exponential with rate 1: -log(1 - v), v = (r + 1/2) 2^-32 in (0, 1). 1 - v is exact in double, so that the winning
// tail (small values, large noise) keeps full relative accuracy.
DRAFTPROOF_HD inline double exponential_noise(std::uint32_t r) {
  const double v = (static_cast<double>(r) + 0.5) * 0x1p-32;
  return -natural_log(1.0 - v);
}

// Gumbel noise: in [-log(33 ln 2), 33 ln 2] = [-3.13, 22.87] nats. A token that is 26 nats below another can therefore
// never beat it; its share, 5e-12, is below what 2^32 values of r can express.
DRAFTPROOF_HD inline double gumbel_noise(std::uint32_t r) {
  return -natural_log(exponential_noise(r));
}

}  // namespace draftproof
