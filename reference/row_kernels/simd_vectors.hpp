// Leaves shared by the vector kernels: types, the end of a tile, sums of lanes.
// Read once per instruction set by row_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_NUMERICS_SIMD_VECTORS_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_NUMERICS_SIMD_VECTORS_TOGGLE
#undef DRAFTPROOF_NUMERICS_SIMD_VECTORS_TOGGLE
#else
#define DRAFTPROOF_NUMERICS_SIMD_VECTORS_TOGGLE
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "reference/row_kernels/row_kernels.hpp"

// Targets without a fused multiply-add would round twice in MulAdd; they use the scalar kernels.
#ifndef DRAFTPROOF_TARGET_FUSES
#define DRAFTPROOF_TARGET_FUSES                                                                                 \
  (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SSE2 && HWY_TARGET != HWY_SSSE3 && \
   HWY_TARGET != HWY_SSE4 && HWY_TARGET != HWY_WASM)
#endif

#if DRAFTPROOF_TARGET_FUSES

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using DoubleTag = hn::ScalableTag<double>;
using WideTag = hn::RebindToUnsigned<DoubleTag>;
using HalfFloatTag = hn::Half<FloatTag>;
using FloatVector = hn::Vec<FloatTag>;
using DoubleVector = hn::Vec<DoubleTag>;

// How far ahead of a row that is read in parts memory is asked: hardware looks ahead only as far as the page ends.
constexpr std::size_t kPrefetchTokens = 2048;

// The last vector of a tile is read from a padded copy, so that every element takes the one vector path.
struct Padded {
  alignas(64) float values[64];
  Padded(const float* from, std::size_t count, float padding) {
    std::fill_n(values, 64, padding);
    std::copy_n(from, count, values);
  }
};

// The sum over lanes, each of which took `additions` of those. Added as unsigned numbers, one by one: the reductions of
// compilers' headers add signed ones, and the sums of a tile that turns out not to fit a fast path may be anything.
HWY_INLINE std::uint64_t sum_lanes(hn::Vec<WideTag> v, std::size_t additions) {
  const WideTag du;
  HWY_ALIGN std::uint64_t lanes[hn::MaxLanes(du)];
  hn::Store(v, du, lanes);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < hn::Lanes(du); ++i) sum += lanes[i] - bit_cast<std::uint64_t>(0x1p52) * additions;
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
