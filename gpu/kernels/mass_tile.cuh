// One tile of 4,096 logits by one block: the fixed-point masses that the mass pass (mass.cuh) is made of. Twin: the row
// kernel tile_mass (reference/row_kernels/row_kernels.hpp).
#pragma once

#include <cstdint>

#include "gpu/kernels/block.cuh"
#include "gpu/kernels/pairs.cuh"
#include "gpu/kernels/words.cuh"
#include "reference/numerics/fixed_point.hpp"
#include "reference/numerics/order_key.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// (key, token) as one integer that grows along the total order: value descending, id ascending.
__device__ inline std::uint64_t packed_first(float x, std::int64_t token) {
  return static_cast<std::uint64_t>(order_key(x)) << 32 | (0xffffffffu - static_cast<std::uint32_t>(token));
}
// Inverse of order_key; -0 comes back as +0.
__device__ inline float value_of_key(std::uint32_t key) {
  return bit_cast<float>((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}
__device__ inline float over_temperature(float logit, float temperature) {
  return temperature == 1.0f || temperature == 0.0f ? logit : logit / temperature;
}
__device__ inline Token token_of_packed(std::uint64_t packed) {
  return static_cast<Token>(0xffffffffu - static_cast<std::uint32_t>(packed));
}

// The sum of the masses W_i of a thread's elements, all of one tile with exponent N_t.
class MassSum {
 public:
  // |N_t| up to 2^20.
  __device__ explicit MassSum(std::int32_t tile_exponent)
      : exponent_(tile_exponent), magic_(exp_constants::kRoundMagic - static_cast<float>(tile_exponent - kMassBits)) {}

  // x from lowest() to 65000: the masses of tile_weight(exp_parts(x), N_t) without branches.
  __device__ void add(const Pair& x) {
    const Scaled scaled = scaled_weights(x);
    sum_ += __float2ull_rn(scaled.first) + __float2ull_rn(scaled.second);
  }
  __device__ void add(float x) { sum_ += __float2ull_rn(scaled_weights({x, x}).first); }
  __device__ std::uint64_t sum() const { return sum_; }

  // A logit at or below this has no mass in the tile; it may stand for all of them.
  __device__ float lowest() const { return (static_cast<float>(exponent_) - 60.0f) * exp_constants::kLn2High; }

 private:
  using Scaled = Pair;  // f 2^(n - N_t + 44)

  __device__ Scaled scaled_weights(const Pair& x) const {
    using namespace exp_constants;
    // Rounding to an integer meets no ties here (x log2 e would have to be 2^22), so that the constant may carry N_t:
    // the low bits of t are n - N_t + 44.
    const Pair t = fma_pairs(x, twice(kLog2E), twice(magic_));
    const Pair n = add_pairs(t, twice(-magic_));
    Pair r = fma_pairs(n, twice(-kLn2High), x);
    r = fma_pairs(n, twice(-kLn2Low), r);
    Pair f = fma_pairs(twice(kC6), r, twice(kC5));
    f = fma_pairs(f, r, twice(kC4));
    f = fma_pairs(f, r, twice(kC3));
    f = fma_pairs(f, r, twice(kC2));
    f = fma_pairs(f, r, twice(1.0f));
    f = fma_pairs(f, r, twice(1.0f));
    return {scaled(f.first, t.first), scaled(f.second, t.second)};
  }
  // The bits of the rounding constant leave t in the shift.
  __device__ static float scaled(float f, float t) {
    return bit_cast<float>(bit_cast<std::uint32_t>(f) + (bit_cast<std::uint32_t>(t) << 23));
  }

  std::int32_t exponent_;
  float magic_;
  std::uint64_t sum_ = 0;
};

// Every |x| up to here takes the float reduction of exp_parts, with room for lowest().
inline constexpr float kFastTileLimit = 65000.0f;

struct TileResult {
  std::uint64_t sum;      // S_t; of a greedy row packed_first of the tile's first token, 0 where all are masked
  std::int32_t exponent;  // N_t
  std::int32_t status;    // draftproof_row_status, before the row as a whole is judged
};

// Where the logits of a tile are.
template <class Element>
struct TileOfRow {
  Global<const Element> data;
  std::int64_t at;           // of its first element in data
  std::int64_t first_token;  // of the row
  std::int64_t available;    // up to the end of the row
  bool vectors;              // `at` lies at a multiple of 16 bytes
  float temperature;
};

template <int kThreads, class T, class Combine>
__device__ inline T reduce_of_block(T value, Combine combine) {
  if constexpr (kThreads == 32) return warp_reduce(value, combine);
  return block_reduce(value, combine);
}

// x / temperature as division rounds it, from the reciprocal as division rounds that (Markstein's sequence; Muller et
// al., Handbook of Floating-Point Arithmetic, 4.7): the second correction rounds a quotient that the first made right
// up to its last place. For numbers far from the ends of the range; a quotient below 2^-100 may be another one.
__device__ inline Pair quotients(const Pair& x, float temperature, float reciprocal) {
  Pair q = fma_pairs(x, twice(reciprocal), twice(0.0f));
  DRAFTPROOF_UNROLL
  for (int i = 0; i < 2; ++i) {
    const Pair rest = fma_pairs(q, twice(-temperature), x);
    q = fma_pairs(rest, twice(reciprocal), q);
  }
  return q;
}

// Any tile, its logits read from memory again for each thing that is asked of them. By all threads of the block.
template <int kThreads, class Element>
__device__ inline TileResult mass_of_any_tile(const TileOfRow<Element>& tile) {
  constexpr int kCount = 8;
  const float temperature = tile.temperature;
  if (!(temperature >= 0.0f && temperature <= 0x1.fffffep127f))
    return {0, kMaskedExponent, DRAFTPROOF_ROW_BAD_PARAMETER};
  const bool greedy = temperature == 0.0f;
  const std::int64_t count = tile.available < kTileTokens ? tile.available : kTileTokens;
  const auto for_each_eight = [&](auto visit) {
    for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * kCount; i < count; i += kThreads * kCount) {
      float x[kCount];
      load_elements(tile.data, tile.at + i, tile.available - i, tile.vectors, negative_infinity(), x);
      visit(x, tile.first_token + i);
    }
  };
  // Invalid elements and the largest one are found before the division, which keeps the order.
  std::uint32_t status = DRAFTPROOF_ROW_OK;
  float largest = negative_infinity();
  for_each_eight([&](const float(&x)[kCount], std::int64_t) {
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kCount; ++e) {
      if (x[e] != x[e]) status = DRAFTPROOF_ROW_NAN_LOGIT;
      largest = x[e] > largest ? x[e] : largest;
    }
  });
  largest = over_temperature(reduce_of_block<kThreads>(largest, Max{}), temperature);
  std::uint32_t of_largest = DRAFTPROOF_ROW_OK;
  if (largest == -negative_infinity()) {
    of_largest = DRAFTPROOF_ROW_INFINITE_LOGIT;
  } else if (largest > kLogitLimit && !greedy) {
    of_largest = DRAFTPROOF_ROW_LOGIT_TOO_LARGE;
  }
  status = reduce_of_block<kThreads>(status > of_largest ? status : of_largest, Max{});
  TileResult out{0, kMaskedExponent, static_cast<std::int32_t>(status)};
  if (status != DRAFTPROOF_ROW_OK) return out;
  if (greedy) {
    std::uint64_t first = 0;
    for_each_eight([&](const float(&x)[kCount], std::int64_t token) {
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kCount; ++e) {
        const std::uint64_t packed = x[e] == largest ? packed_first(x[e], token + e) : 0;
        first = packed > first ? packed : first;
      }
    });
    first = reduce_of_block<kThreads>(first, Max{});
    if (largest > negative_infinity()) out.sum = first;
    return out;
  }
  const ExpParts parts = exp_parts(largest);
  if (parts.f == 0.0f) return out;
  out.exponent = parts.n;
  std::uint64_t sum = 0;
  if (largest <= kFastTileLimit && largest >= -kFastTileLimit && temperature >= 0x1p-20f && temperature <= 0x1p20f) {
    MassSum masses(out.exponent);
    const float lowest = masses.lowest();
    const float floor = (lowest - 1.0f) * temperature;
    const float reciprocal = 1.0f / temperature;
    const bool divides = temperature != 1.0f;
    for_each_eight([&](const float(&x)[kCount], std::int64_t) {
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kCount; e += 2) {
        Pair raised{x[e] > floor ? x[e] : floor, x[e + 1] > floor ? x[e + 1] : floor};
        masses.add(divides ? quotients(raised, temperature, reciprocal) : raised);
      }
    });
    sum = masses.sum();
  } else {
    for_each_eight([&](const float(&x)[kCount], std::int64_t) {
      for (int e = 0; e < kCount; ++e)
        sum += mass_of_weight(tile_weight(exp_parts(over_temperature(x[e], temperature)), out.exponent));
    });
  }
  out.sum = reduce_of_block<kThreads>(sum, Sum{});
  return out;
}

// All threads of the block call it.
template <int kThreads, class Element>
__device__ inline TileResult mass_of_tile(const TileOfRow<Element>& tile) {
  constexpr int kPer = kPerWord<Element>;
  constexpr int kWords = kTileTokens / kThreads / kPer;
  if (!tile.vectors || tile.available < kTileTokens || tile.temperature != 1.0f)
    return mass_of_any_tile<kThreads>(tile);
  std::uint32_t words[kWords];
  load_words<Element, kThreads>(tile.data, tile.at, words);
  std::uint32_t largest_word = words[0];
  std::uint32_t smallest_word = words[0];
  DRAFTPROOF_UNROLL
  for (int w = 1; w < kWords; ++w) {
    largest_word = max_of_words<Element>(largest_word, words[w]);
    smallest_word = min_of_words<Element>(smallest_word, words[w]);
  }
  float largest = element_of_word<Element>(largest_word, 0);
  float smallest = element_of_word<Element>(smallest_word, 0);
  if constexpr (kPer == 2) {
    const float other = element_of_word<Element>(largest_word, 1);
    largest = largest >= other || largest != largest ? largest : other;  // NaN where either is
    smallest =
        element_of_word<Element>(smallest_word, 1) < smallest ? element_of_word<Element>(smallest_word, 1) : smallest;
  }
  constexpr std::uint32_t kNoNumber = 0xffffffff;
  const std::uint32_t own_key = largest == largest ? order_key(largest) : kNoNumber;
  const std::uint32_t largest_key = reduce_of_block<kThreads>(own_key, Max{});
  if (largest_key == kNoNumber) return mass_of_any_tile<kThreads>(tile);
  largest = value_of_key(largest_key);
  constexpr float kLimit = kPer == 1 ? kFastTileLimit : 8000.0f;  // below it 16 bits hold a floor finely enough
  if (!(largest >= -kLimit && largest <= kLimit)) return mass_of_any_tile<kThreads>(tile);

  TileResult out{0, exp_parts(largest).n, DRAFTPROOF_ROW_OK};
  MassSum masses(out.exponent);
  // Logits so low that their weight would not be a normal float are raised to where there is no mass either.
  if (smallest < masses.lowest()) {
    const std::uint32_t floor = word_of<Element>((static_cast<float>(out.exponent) - 100.0f) * exp_constants::kLn2High);
    DRAFTPROOF_UNROLL
    for (int w = 0; w < kWords; ++w) words[w] = max_of_words<Element>(words[w], floor);
  }
  DRAFTPROOF_UNROLL
  for (int i = 0; i < kWords * kPer; i += 2)
    masses.add({element_of_word<Element>(words[i / kPer], 0), element_of_word<Element>(words[(i + 1) / kPer], 1)});
  out.sum = reduce_of_block<kThreads>(masses.sum(), Sum{});
  return out;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
