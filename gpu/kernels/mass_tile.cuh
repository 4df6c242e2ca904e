// One tile of 4,096 logits by one block: the fixed-point masses that the mass pass (mass.cuh) and the pipeline
// (process.cuh) are made of. Twin: the row kernel tile_mass (reference/numerics/row_kernels.hpp).
#pragma once

#include <cstdint>

#include "gpu/kernels/block.cuh"
#include "gpu/kernels/elements.cuh"
#include "reference/numerics/fixed_point.hpp"
#include "reference/numerics/order_key.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

__device__ inline float negative_infinity() {
  return bit_cast<float>(0xff800000u);
}

// (key, token) as one integer that grows along the total order: value descending, id ascending.
__device__ inline std::uint64_t packed_first(float x, std::int64_t token) {
  return static_cast<std::uint64_t>(order_key(x)) << 32 | (0xffffffffu - static_cast<std::uint32_t>(token));
}
__device__ inline Token token_of_packed(std::uint64_t packed) {
  return static_cast<Token>(0xffffffffu - static_cast<std::uint32_t>(packed));
}

// The sum of the masses W_i of a thread's elements, all of one tile with exponent N_t.
class MassSum {
 public:
  __device__ explicit MassSum(std::int32_t tile_exponent) : exponent_(tile_exponent) {}

  // x in [lowest(), 65000]: the bits of tile_weight(exp_parts(x), N_t) without branches.
  __device__ void add(float x) {
    using namespace exp_constants;
    const float t = std::fma(x, kLog2E, kRoundMagic);
    const float n = t - kRoundMagic;
    float r = std::fma(-n, kLn2High, x);
    r = std::fma(-n, kLn2Low, r);
    const std::uint32_t f = bit_cast<std::uint32_t>(exp_polynomial(r));
    // n is in the low bits of t; f is normal and stays so, since the exponent of x lies less than 64 below N_t.
    const std::uint32_t k =
        bit_cast<std::uint32_t>(t) - bit_cast<std::uint32_t>(kRoundMagic) - static_cast<std::uint32_t>(exponent_);
    add_weight(bit_cast<float>(f + (k << 23)));
  }
  // weight in [0, 1.5): RNE(weight 2^44), its upper part in units of 2^23 and the rest, each by an addition that leaves
  // the integer in the low bits of the sum.
  __device__ void add_weight(float weight) {
    const float upper = weight + kUpperMagic;
    const float rest = weight - (upper - kUpperMagic);  // exact, within 2^-22
    upper_ += bit_cast<std::uint32_t>(upper) - bit_cast<std::uint32_t>(kUpperMagic);
    rest_ +=
        static_cast<std::int32_t>(bit_cast<std::uint32_t>(rest + kRestMagic) - bit_cast<std::uint32_t>(kRestMagic));
  }
  // Of at most 128 elements.
  __device__ std::uint64_t sum() const {
    return (static_cast<std::uint64_t>(upper_) << 23) + static_cast<std::uint64_t>(static_cast<std::int64_t>(rest_));
  }

  // A logit at or below this has no mass in the tile; it may stand for all of them.
  __device__ float lowest() const { return (static_cast<float>(exponent_) - 60.0f) * exp_constants::kLn2High; }

 private:
  static constexpr float kUpperMagic = 6.0f;       // ulp 2^-21
  static constexpr float kRestMagic = 0x1.8p-21f;  // ulp 2^-44

  std::int32_t exponent_;
  std::uint32_t upper_ = 0;
  std::int32_t rest_ = 0;
};

// Every |x| up to here takes the float reduction of exp_parts, with room for lowest().
inline constexpr float kFastTileLimit = 65000.0f;

struct TileResult {
  std::uint64_t sum;      // S_t; of a greedy row packed_first of the tile's first token, 0 where all are masked
  std::int32_t exponent;  // N_t
  std::int32_t status;    // draftproof_row_status, before the row as a whole is judged
};

// One tile, by all threads of the block. x: this thread's logits over the temperature, -infinity where there is none;
// its element i is token first_token + i / kWidth * blockDim.x * kWidth + i % kWidth.
template <int kWidth, int kCount>
__device__ inline TileResult mass_of_tile(const float (&x)[kCount], std::int64_t first_token, bool greedy) {
  float largest = negative_infinity();
  bool right = true;
  DRAFTPROOF_UNROLL
  for (int i = 0; i < kCount; ++i) {
    right = right && x[i] <= kLogitLimit;
    largest = x[i] > largest ? x[i] : largest;
  }
  TileResult out{0, kMaskedExponent, DRAFTPROOF_ROW_OK};
  if (block_any(!right)) {
    std::uint32_t worst = 0;
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      std::uint32_t status = 0;
      if (x[i] != x[i]) {
        status = DRAFTPROOF_ROW_NAN_LOGIT;
      } else if (x[i] == -negative_infinity()) {
        status = DRAFTPROOF_ROW_INFINITE_LOGIT;
      } else if (x[i] > kLogitLimit && !greedy) {
        status = DRAFTPROOF_ROW_LOGIT_TOO_LARGE;
      }
      worst = status > worst ? status : worst;
    }
    out.status = static_cast<std::int32_t>(block_reduce(worst, Max{}));
    if (out.status != DRAFTPROOF_ROW_OK) return out;
  }
  largest = block_reduce(largest, Max{});
  if (greedy) {
    std::uint64_t first = 0;
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const std::int64_t token = first_token + i / kWidth * static_cast<std::int64_t>(blockDim.x) * kWidth + i % kWidth;
      const std::uint64_t packed = x[i] == largest ? packed_first(x[i], token) : 0;
      first = packed > first ? packed : first;
    }
    if (largest > negative_infinity()) out.sum = block_reduce(first, Max{});
    return out;
  }
  const ExpParts parts = exp_parts(largest);
  if (parts.f == 0.0f) return out;
  out.exponent = parts.n;
  std::uint64_t sum = 0;
  if (largest <= kFastTileLimit && largest >= -kFastTileLimit) {
    MassSum masses(out.exponent);
    const float lowest = masses.lowest();
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) masses.add(x[i] > lowest ? x[i] : lowest);
    sum = masses.sum();
  } else {
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) sum += mass_of_weight(tile_weight(exp_parts(x[i]), out.exponent));
  }
  out.sum = block_reduce(sum, Sum{});
  return out;
}

// A thread's elements of a tile, as mass_of_tile wants them.
template <class Element, int kCount>
__device__ inline void load_tile(const RowsView& rows, std::int64_t row, std::int64_t tile, std::int64_t vocab_size,
                                 float temperature, float (&x)[kCount]) {
  constexpr int kWidth = Vector<Element>::kCount;
  const Global<const Element> data = rows.elements<Element>();
  DRAFTPROOF_UNROLL
  for (int v = 0; v < kCount / kWidth; ++v) {
    const std::int64_t column = tile * kTileTokens + (v * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) * kWidth;
    float part[kWidth];
    load_elements(data, row * rows.row_stride + column, vocab_size - column, rows.aligned != 0, negative_infinity(),
                  part);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kWidth; ++e) x[v * kWidth + e] = part[e];
  }
  if (temperature == 1.0f || temperature == 0.0f) return;
  DRAFTPROOF_UNROLL
  for (int i = 0; i < kCount; ++i) x[i] = x[i] / temperature;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
