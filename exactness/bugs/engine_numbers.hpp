// Numbers as engines have them: words at the ends of the range, logarithms of binary32, values kept as bfloat16.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "base/dtype.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {

// Words at which a conversion to a uniform number can reach an end of its range: both ends, and the last words before
// binary32 rounds up to 2^32 or to the next value below it.
inline constexpr std::array<std::uint32_t, 10> kEndWords{
    0, 1, 0x7fu, 0xffu, 0x1ffu, 0xfffffe00u, 0xffffff00u, 0xffffff7fu, 0xffffff80u, 0xffffffffu};

inline constexpr RandomBlock block_of(std::uint32_t word) {
  return {{word, word, word, word}};
}

// log 0 = -infinity, log infinity = infinity, NaN below 0.
inline float log_f32(float x) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (x == 0.0f) return -infinity;
  if (x == infinity) return x;
  if (!(x > 0.0f)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(natural_log(static_cast<double>(x)));
}

inline double to_bfloat16(double x) {
  return static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x))));
}

}  // namespace draftproof
