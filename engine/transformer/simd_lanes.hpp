// Leaves shared by the vector kernels of a forward pass: types, 16 lanes as one or more vectors, exp.
// Read once per instruction set by transformer_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_TRANSFORMER_SIMD_LANES_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_TRANSFORMER_SIMD_LANES_TOGGLE
#undef DRAFTPROOF_TRANSFORMER_SIMD_LANES_TOGGLE
#else
#define DRAFTPROOF_TRANSFORMER_SIMD_LANES_TOGGLE
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "engine/transformer/transformer_kernels.hpp"
#include "reference/numerics/exp_parts.hpp"

// Targets without a fused multiply-add would round twice in MulAdd; they use the scalar kernels, as do those whose
// vectors have no size at compile time.
#ifndef DRAFTPROOF_TRANSFORMER_TARGET
#define DRAFTPROOF_TRANSFORMER_TARGET                                                                      \
  (!HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SSE2 && \
   HWY_TARGET != HWY_SSSE3 && HWY_TARGET != HWY_SSE4 && HWY_TARGET != HWY_WASM)
#endif

#if DRAFTPROOF_TRANSFORMER_TARGET
HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using LaneTag = hn::CappedTag<float, 16>;
using LaneIntTag = hn::RebindToSigned<LaneTag>;
using LaneWordTag = hn::RebindToUnsigned<LaneTag>;
using HalfTag = hn::Rebind<hwy::float16_t, LaneTag>;
using ShortTag = hn::Rebind<std::uint16_t, LaneTag>;
using LaneVector = hn::Vec<LaneTag>;
constexpr std::size_t kVectorLanes = hn::MaxLanes(LaneTag());
constexpr std::size_t kVectors = 16 / kVectorLanes;  // that make up 16 lanes

HWY_INLINE LaneVector load_f16(const std::uint16_t* at) {
  return hn::PromoteTo(LaneTag(), hn::LoadU(HalfTag(), reinterpret_cast<const hwy::float16_t*>(at)));
}

// Lanes l and l + 8, l + 4, l + 2, l + 1.
HWY_INLINE float sum_of_lanes(const LaneVector* v) {
  alignas(64) float lanes[16];
  for (std::size_t i = 0; i < kVectors; ++i) hn::Store(v[i], LaneTag(), lanes + i * kVectorLanes);
  for (std::size_t half = 8; half >= 1; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

HWY_INLINE LaneVector limited_exp(LaneVector x) {
  using namespace exp_constants;
  const LaneTag d;
  const LaneIntTag di;
  // Not Min and Max: a NaN must stay one.
  x = hn::IfThenElse(hn::Lt(x, hn::Set(d, -kExpLimit)), hn::Set(d, -kExpLimit), x);
  x = hn::IfThenElse(hn::Gt(x, hn::Set(d, kExpLimit)), hn::Set(d, kExpLimit), x);
  const LaneVector t = hn::MulAdd(x, hn::Set(d, kLog2E), hn::Set(d, kRoundMagic));
  const LaneVector n = hn::Sub(t, hn::Set(d, kRoundMagic));
  LaneVector r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
  LaneVector p = hn::Set(d, kC6);
  for (const float c : {kC5, kC4, kC3, kC2, 1.0f, 1.0f}) p = hn::MulAdd(p, r, hn::Set(d, c));
  const auto exponent = hn::Sub(hn::BitCast(di, t), hn::Set(di, bit_cast<std::int32_t>(kRoundMagic) - 127));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
