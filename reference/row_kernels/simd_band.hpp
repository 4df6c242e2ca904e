// What filters ask of a tile, in vectors: the range of its logits, and its sums by a band of values.
// Read once per instruction set by row_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_NUMERICS_SIMD_BAND_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_NUMERICS_SIMD_BAND_TOGGLE
#undef DRAFTPROOF_NUMERICS_SIMD_BAND_TOGGLE
#else
#define DRAFTPROOF_NUMERICS_SIMD_BAND_TOGGLE
#endif

#include <algorithm>
#include <limits>

#include "reference/row_kernels/simd_mass.hpp"
#include "reference/row_kernels/simd_vectors.hpp"

#if DRAFTPROOF_TARGET_FUSES
HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

bool tile_range(const float* x, std::size_t count, TileMass* out, float* group_largest) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const float infinity = std::numeric_limits<float>::infinity();
  const auto limit = hn::Set(d, exp_constants::kFastLimit);
  const auto lowest = hn::Set(d, -kLogitLimit);
  // Two of everything, since a maximum waits for the one before it.
  FloatVector least[2] = {hn::Set(d, infinity), hn::Set(d, infinity)};
  FloatVector all_largest = hn::Set(d, -infinity);
  auto right = hn::Eq(limit, limit);
  std::size_t masked = 0;
  for (std::size_t begin = 0; begin < count; begin += kGroupTokens) {
    const std::size_t end = std::min(count, begin + kGroupTokens);
    FloatVector largest[2] = {hn::Set(d, -infinity), hn::Set(d, -infinity)};
    const auto take = [&](FloatVector v, int which) HWY_ATTR __attribute__((always_inline)) {
      const auto is_masked = hn::Lt(v, lowest);
      // Not masked and within the limit, or masked.
      right = hn::And(right, hn::Or(hn::Le(hn::Abs(v), limit), is_masked));
      masked += hn::CountTrue(d, is_masked);
      largest[which] = hn::Max(largest[which], v);
      least[which] = hn::Min(least[which], hn::IfThenElse(is_masked, hn::Set(d, infinity), v));
    };
    std::size_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      for (int which = 0; which < 2; ++which)
        take(hn::LoadU(d, x + i + static_cast<std::size_t>(which) * lanes), which);
    }
    for (; i < end; i += lanes) {
      const std::size_t here = std::min(lanes, end - i);
      const Padded part(x + i, here, -infinity);
      take(hn::Load(d, part.values), 0);
      masked -= lanes - here;
    }
    const FloatVector of_group = hn::Max(largest[0], largest[1]);
    all_largest = hn::Max(all_largest, of_group);
    const float top = hn::GetLane(hn::MaxOfLanes(d, of_group));
    *group_largest++ = top < -kLogitLimit ? -infinity : top;
  }
  if (!hn::AllTrue(d, right)) {
    group_largest -= (count + kGroupTokens - 1) / kGroupTokens;
    return scalar_row_kernels().tile_range(x, count, out, group_largest);
  }
  *out = TileMass{};
  const float top = hn::GetLane(hn::MaxOfLanes(d, all_largest));
  if (top < -kLogitLimit) return true;
  out->n_max = exp_parts(top).n;
  out->n_min = exp_parts(hn::GetLane(hn::MinOfLanes(d, hn::Min(least[0], least[1])))).n;
  out->kept = static_cast<std::int32_t>(count - masked);
  return true;
}

// The lanes of `bits`, those of the lower or upper half of a vector of floats, for which the mask of floats holds; else
// 0.
template <bool kUpper>
HWY_INLINE hn::Vec<WideTag> half_where(hn::Mask<FloatTag> mask, hn::Vec<WideTag> bits) {
  const WideTag du;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  const auto half = static_cast<__mmask8>(kUpper ? mask.raw >> 8 : mask.raw);
  return hn::IfThenElseZero(hn::Mask<WideTag>{half}, bits);
#else
  const hn::RebindToSigned<WideTag> di;
  const hn::Half<IntTag> half_int;
  const auto lanes = hn::BitCast(IntTag(), hn::VecFromMask(FloatTag(), mask));
  const auto part = kUpper ? hn::UpperHalf(half_int, lanes) : hn::LowerHalf(half_int, lanes);
  return hn::And(hn::BitCast(du, hn::PromoteTo(di, part)), bits);
#endif
}

// kInRow: masses lose bits on the way to the row's scale, so that those sums are kept apart.
template <bool kInRow>
HWY_INLINE TileBand band_sums(const float* x, std::size_t count, std::int32_t n_max, std::int64_t shift, float low,
                              float high, float* band) {
  const FloatTag d;
  const IntTag di;
  const WideTag du;
  const std::size_t lanes = hn::Lanes(d);
  const auto bias = hn::Set(di, n_max + bit_cast<std::int32_t>(exp_constants::kRoundMagic));
  const auto lowest = hn::Set(d, -kLogitLimit);
  const auto least = hn::Set(d, low);
  const auto most = hn::Set(d, high);
  // Takes away what the shift would, and leaves the exponent bits of the accumulated doubles alone.
  const auto whole = hn::Set(du, ~((std::uint64_t{1} << shift) - 1));
  const DoubleTag dd;
  const HalfFloatTag half;
  const auto scale = hn::Set(dd, 0x1p44);
  const auto magic = hn::Set(dd, 0x1p52);
  auto sum = hn::Zero(du);
  auto sum_in_row = hn::Zero(du);
  auto above = hn::Zero(du);
  auto above_in_row = hn::Zero(du);
  const auto bits_of = [&](auto part)
                           HWY_ATTR { return hn::BitCast(du, hn::MulAdd(hn::PromoteTo(dd, part), scale, magic)); };
  TileBand out;
  std::size_t vectors = 0;
  std::size_t filled = 0;
  const auto take = [&](FloatVector v) HWY_ATTR __attribute__((always_inline)) {
    const auto w = hn::IfThenElseZero(hn::Ge(v, lowest), fast_weight(v, bias));
    const auto low_bits = bits_of(hn::LowerHalf(half, w));
    const auto high_bits = bits_of(hn::UpperHalf(half, w));
    sum = hn::Add(sum, hn::Add(low_bits, high_bits));
    const auto is_above = hn::Gt(v, most);
    const auto low_above = half_where<false>(is_above, low_bits);
    const auto high_above = half_where<true>(is_above, high_bits);
    above = hn::Add(above, hn::Add(low_above, high_above));
    if (kInRow) {
      sum_in_row = hn::Add(sum_in_row, hn::Add(hn::And(low_bits, whole), hn::And(high_bits, whole)));
      above_in_row = hn::Add(above_in_row, hn::Add(hn::And(low_above, whole), hn::And(high_above, whole)));
    }
    out.above_count += static_cast<std::int32_t>(hn::CountTrue(d, is_above));
    // Written always: whether a vector has tokens of the band is what no branch predictor knows.
    const auto in_band = hn::AndNot(is_above, hn::Ge(v, least));
    hn::StoreU(hn::Compress(v, in_band), d, band + filled);
    filled += hn::CountTrue(d, in_band);
    ++vectors;
  };
  const std::size_t rest = count % lanes;
  const Padded tail(x + (count - rest), rest, -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < count; i += lanes)
    take(i + lanes <= count ? hn::LoadU(d, x + i) : hn::Load(d, tail.values));
  const std::size_t additions = 2 * vectors;
  const std::uint64_t above_bias = bit_cast<std::uint64_t>(0x1p52) * static_cast<std::uint64_t>(out.above_count);
  out.sum = sum_lanes(sum, additions);
  // Lanes that are not above were not counted with the exponent's bits: each that was adds it once.
  out.above = sum_lanes(above, 0) - above_bias;
  out.sum_in_row = kInRow ? sum_lanes(sum_in_row, additions) >> shift : out.sum;
  out.above_in_row = kInRow ? (sum_lanes(above_in_row, 0) - above_bias) >> shift : out.above;
  out.band_count = static_cast<std::int32_t>(filled);
  return out;
}

TileBand tile_band(const float* x, std::size_t count, const TileMass& range, std::int64_t shift, float low, float high,
                   float* band) {
  // Exponents strictly within those of the fast limit say that every logit is within it.
  constexpr std::int32_t kFastExponent = 94548;
  if (range.n_max >= kFastExponent || (range.n_min <= -kFastExponent && range.n_min != kMaskedExponent))
    return scalar_row_kernels().tile_band(x, count, range, shift, low, high, band);
  if (shift == 0) return band_sums<false>(x, count, range.n_max, 0, low, high, band);
  // From here on no mass has a bit left.
  constexpr std::int64_t kNoneLeft = 46;
  return band_sums<true>(x, count, range.n_max, std::min(shift, kNoneLeft), low, high, band);
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
