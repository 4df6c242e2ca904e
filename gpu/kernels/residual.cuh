// Sums of residual masses RNE(max(p - q, 0) 2^62), and tokens drawn by masses (twins: the row kernel `residual`,
// DifferenceMasses in reference/sampling/row_law.cpp, reference/sampling/dense_draw.cpp).
//
// Ladder:
//   v1  residual_mass of every element: double precision, conversions between 32 and 64 bits, which a GPU does at a
//       sixteenth of its rate.
//   v2  (this) three float additions cut x into integers of units 2^-21, 2^-44 and 2^-62 that are added up on their
//   own:
//       10 float and integer instructions an element, the same sum. What is weighted in double precision (block
//       verification) is cut in two by double additions, without conversions to integers.
#pragma once

#include <cstdint>

#include "gpu/kernels/block.cuh"
#include "reference/numerics/fixed_point.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/token.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Sums of masses that are right up to 3 * 2^62 and stay at this number beyond: rows sum to 1, and a row whose sum is
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

// What a sum says of its row.
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
  // Of at most 256 elements.
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
  // Of at most 256 elements.
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

// The tile in which the running sum of tile_sum passes floor(r total / 2^64), where r is the block's high half; every
// thread gets it. At most as many tiles as threads; total is their sum and not 0.
__device__ inline std::int32_t draw_tile(std::uint64_t tile_sum_of_thread, std::uint64_t total,
                                         const RandomBlock& random) {
  const std::uint64_t target = multiply_high(high_half(random), total);
  const std::uint64_t before = block_scan(tile_sum_of_thread).before;
  const bool is_here = before <= target && target - before < tile_sum_of_thread;
  return block_broadcast(is_here, static_cast<std::int32_t>(threadIdx.x));
}

// The token of a tile in which the running sum of masses passes floor(r tile_sum / 2^64), where r is the block's low
// half. masses_at(column, out): the masses of kWidth tokens from `column` on, 0 where there are none.
template <int kWidth, class MassesAt>
__device__ inline Token draw_in_tile(std::int64_t tile, std::uint64_t tile_sum, const RandomBlock& random,
                                     MassesAt masses_at) {
  std::uint64_t left = multiply_high(low_half(random), tile_sum);
  for (std::int64_t first = 0; first < kTileTokens; first += static_cast<std::int64_t>(blockDim.x) * kWidth) {
    const std::int64_t column = tile * kTileTokens + first + threadIdx.x * kWidth;
    std::uint64_t mass[kWidth];
    masses_at(column, mass);
    std::uint64_t sum = 0;
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kWidth; ++e) sum += mass[e];
    const Scanned<std::uint64_t> scanned = block_scan(sum);
    if (left >= scanned.total) {
      left -= scanned.total;
      continue;
    }
    const bool is_here = scanned.before <= left && left - scanned.before < sum;
    std::uint64_t passed = scanned.before;
    std::int64_t token = column;
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      passed += mass[e];
      token += passed <= left ? 1 : 0;
    }
    return block_broadcast(is_here, static_cast<Token>(token));
  }
  return DRAFTPROOF_NO_TOKEN;  // not reached: the masses sum to tile_sum
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
