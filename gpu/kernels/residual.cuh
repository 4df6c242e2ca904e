// Sums of residual masses RNE(max(p - q, 0) 2^62) (twins: the row kernel `residual`, DifferenceMasses in
// reference/sampling/distribution.cpp).
//
// Ladder:
//   v1 (this)  three float additions cut x into integers of units 2^-21, 2^-44 and 2^-62 that are added up on their
//       own: 10 float and integer instructions an element, the sum of residual_mass without its double precision and
//       its conversions between 32 and 64 bits, which a GPU does at a sixteenth of its rate. What is weighted in double
//       precision (block verification) is cut in two by double additions, without conversions to integers.
//   next: packed additions of two floats (sm_100).
#pragma once

#include <cstdint>

#include "gpu/kernels/block.cuh"
#include "reference/numerics/fixed_point.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Sums of masses that are exact up to 3 * 2^62 and stay at this number beyond: rows sum to 1, and a row whose sum is
// above 3 is refused. So no sum overflows, whatever is in a row.
inline constexpr std::uint64_t kSumTooLarge = (std::uint64_t{3} << 62) + 1;
// In place of a sum: the row holds something that is no probability.
inline constexpr std::uint64_t kNoProbability = ~std::uint64_t{0};

struct CappedSum {
  __device__ std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    const std::uint64_t worse = a > b ? a : b;
    if (worse == kNoProbability) return worse;
    const std::uint64_t sum = a + b;
    return sum < a || sum > kSumTooLarge ? kSumTooLarge : sum;
  }
};

// Row status from the sum of its probabilities.
__device__ inline std::int32_t status_of_sum(std::uint64_t sum) {
  if (sum == kNoProbability) return DRAFTPROOF_ROW_BAD_PROBABILITY;
  return sum == kSumTooLarge ? DRAFTPROOF_ROW_BAD_SUM : DRAFTPROOF_ROW_OK;
}

// The sum over a thread's elements, floats.
class ResidualSum {
 public:
  // x in [0, 1]. Each addition leaves an integer in the low bits of its sum; each subtraction is exact. The integers of
  // the larger units are even in the smallest, so that rounding what is left to nearest even rounds x so.
  __device__ void add(float x) {
    const float upper = x + kUpperMagic;
    const float rest = x - (upper - kUpperMagic);
    const float middle = rest + kMiddleMagic;
    const float last = (rest - (middle - kMiddleMagic)) + kLowMagic;
    upper_ += bit_cast<std::uint32_t>(upper) - bit_cast<std::uint32_t>(kUpperMagic);
    middle_ += static_cast<std::int32_t>(bit_cast<std::uint32_t>(middle) - bit_cast<std::uint32_t>(kMiddleMagic));
    low_ += static_cast<std::int32_t>(bit_cast<std::uint32_t>(last) - bit_cast<std::uint32_t>(kLowMagic));
  }
  // Sum of at most 256 elements.
  __device__ std::uint64_t sum() const {
    if (upper_ > (std::uint32_t{7} << 20)) return kSumTooLarge;  // above 3.5
    const std::int64_t rest = (static_cast<std::int64_t>(middle_) << 18) + low_;
    const std::uint64_t sum = (static_cast<std::uint64_t>(upper_) << 41) + static_cast<std::uint64_t>(rest);
    return sum > kSumTooLarge ? kSumTooLarge : sum;
  }

 private:
  static constexpr float kUpperMagic = 4.0f;         // ulp 2^-21
  static constexpr float kMiddleMagic = 0x1.8p-21f;  // ulp 2^-44
  static constexpr float kLowMagic = 0x1.8p-39f;     // ulp 2^-62

  std::uint32_t upper_ = 0;
  std::int32_t middle_ = 0;
  std::int32_t low_ = 0;
};

// The same of doubles.
class WideResidualSum {
 public:
  // x in [0, 1].
  __device__ void add(double x) {
    const double upper = x + kUpperMagic;
    const double rest = (x - (upper - kUpperMagic)) + kLowMagic;
    upper_ += static_cast<std::uint32_t>(bit_cast<std::uint64_t>(upper));
    low_ += static_cast<std::int32_t>(static_cast<std::uint32_t>(bit_cast<std::uint64_t>(rest)));
  }
  // Sum of at most 256 elements.
  __device__ std::uint64_t sum() const {
    if (upper_ > (std::uint64_t{7} << 30)) return kSumTooLarge;  // above 3.5
    const std::uint64_t sum = (upper_ << 31) + static_cast<std::uint64_t>(low_);
    return sum > kSumTooLarge ? kSumTooLarge : sum;
  }

 private:
  static constexpr double kUpperMagic = 0x1.8p21;  // ulp 2^-31; its low word is 0
  static constexpr double kLowMagic = 0x1.8p-10;   // ulp 2^-62; its low word is 0

  std::uint64_t upper_ = 0;
  std::int64_t low_ = 0;
};

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
