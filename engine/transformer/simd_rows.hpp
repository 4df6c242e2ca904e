// Loops over rows of activations in vectors: int8 codes, norm, SwiGLU, sums, conversions.
// Read once per instruction set by transformer_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_TRANSFORMER_SIMD_ROWS_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_TRANSFORMER_SIMD_ROWS_TOGGLE
#undef DRAFTPROOF_TRANSFORMER_SIMD_ROWS_TOGGLE
#else
#define DRAFTPROOF_TRANSFORMER_SIMD_ROWS_TOGGLE
#endif

#include "engine/transformer/simd_lanes.hpp"

#if DRAFTPROOF_TRANSFORMER_TARGET
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

void quantise(const float* x, std::int64_t block_begin, std::int64_t block_end, const Int8Tile& tile, int row) {
  const LaneTag d;
  const LaneIntTag di;
  const hn::Rebind<std::int8_t, LaneTag> d8;
  constexpr std::size_t kBlockVectors = 32 / kVectorLanes;
  for (std::int64_t b = block_begin; b < block_end; ++b) {
    const float* const values = x + b * kBlockColumns;
    Int8Block& to = tile.blocks[b * tile.rows + row];
    LaneVector v[kBlockVectors];
    auto largest = hn::Zero(di);
    for (std::size_t i = 0; i < kBlockVectors; ++i) {
      v[i] = hn::LoadU(d, values + i * kVectorLanes);
      largest = hn::Max(largest, hn::BitCast(di, hn::Abs(v[i])));
    }
    const std::int32_t bits = hn::GetLane(hn::MaxOfLanes(di, largest));
    if (bits >= 0x7f800000) {
      scalar_transformer_kernels().quantise(x, b, b + 1, tile, row);
      continue;
    }
    const float amax = bit_cast<float>(bits);
    const float inverse = amax > 1e-30f ? 127.0f / amax : 0.0f;
    const float scale = inverse == 0.0f ? 0.0f : amax / 127.0f;
    hn::Vec<LaneIntTag> sums[2] = {hn::Zero(di), hn::Zero(di)};
    for (std::size_t i = 0; i < kBlockVectors; ++i) {
      const auto q = hn::NearestInt(hn::Mul(v[i], hn::Set(d, inverse)));
      sums[i / kVectors] = hn::Add(sums[i / kVectors], q);
      hn::StoreU(hn::DemoteTo(d8, q), d8, to.q + i * kVectorLanes);
    }
    const std::int32_t low = hn::GetLane(hn::SumOfLanes(di, sums[0]));
    const std::int32_t high = hn::GetLane(hn::SumOfLanes(di, sums[1]));
    to.scale = scale;
    to.scaled_sum = scale * static_cast<float>(low + high);
    to.scaled_half_sums[0] = scale * static_cast<float>(low);
    to.scaled_half_sums[1] = scale * static_cast<float>(high);
    to.minus_8_sum = -8 * (low + high);
    to.minus_128_sum = -128 * (low + high);
    to.minus_32_half_sums[0] = -32 * low;
    to.minus_32_half_sums[1] = -32 * high;
  }
}

void rms_norm(const float* x, const float* weight, std::size_t count, float epsilon, float* out) {
  const LaneTag d;
  LaneVector sums[kVectors];
  for (LaneVector& sum : sums) sum = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += 16)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const LaneVector value = hn::LoadU(d, x + i + v * kVectorLanes);
      sums[v] = hn::MulAdd(value, value, sums[v]);
    }
  const float s = sum_of_lanes(sums);
  const auto r = hn::Set(d, 1.0f / std::sqrt(s / static_cast<float>(count) + epsilon) + (s - s));
  for (std::size_t i = 0; i < count; i += kVectorLanes)
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + i), r), hn::LoadU(d, weight + i)), d, out + i);
}

void swiglu(const float* gate, const float* up, std::size_t count, float* out) {
  const LaneTag d;
  for (std::size_t i = 0; i < count; i += kVectorLanes) {
    const LaneVector g = hn::LoadU(d, gate + i);
    const LaneVector silu = hn::Div(g, hn::Add(hn::Set(d, 1.0f), limited_exp(hn::Neg(g))));
    hn::StoreU(hn::Mul(silu, hn::LoadU(d, up + i)), d, out + i);
  }
}

void add(float* x, const float* y, std::size_t count) {
  const LaneTag d;
  for (std::size_t i = 0; i < count; i += kVectorLanes)
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, x + i);
}

void scale(const float* x, std::size_t count, float factor, float* out) {
  const LaneTag d;
  for (std::size_t i = 0; i < count; i += kVectorLanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, out + i);
}

bool to_f16(const float* x, std::size_t count, std::uint16_t* out) {
  const LaneTag d;
  const HalfTag half;
  const auto limit = hn::Set(d, 65520.0f);  // and above, binary16 is infinite
  auto finite = hn::Eq(limit, limit);
  for (std::size_t i = 0; i < count; i += kVectorLanes) {
    const LaneVector v = hn::LoadU(d, x + i);
    finite = hn::And(finite, hn::Lt(hn::Abs(v), limit));
    hn::StoreU(hn::DemoteTo(half, v), half, reinterpret_cast<hwy::float16_t*>(out + i));
  }
  return hn::AllTrue(d, finite);
}

bool all_finite(const float* x, std::size_t count) {
  const LaneTag d;
  const auto infinity = hn::Inf(d);
  auto finite = hn::Eq(infinity, infinity);
  std::size_t i = 0;
  for (; i + kVectorLanes <= count; i += kVectorLanes)
    finite = hn::And(finite, hn::Lt(hn::Abs(hn::LoadU(d, x + i)), infinity));
  return hn::AllTrue(d, finite) && scalar_transformer_kernels().all_finite(x + i, count - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
