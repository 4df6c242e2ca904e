// Loops of the filters over a tile, in vectors: the range of its logits, and its sums by a band of values. Read once
// per instruction set by row_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_NUMERICS_SIMD_BAND_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_NUMERICS_SIMD_BAND_TOGGLE
#undef DRAFTPROOF_NUMERICS_SIMD_BAND_TOGGLE
#else
#define DRAFTPROOF_NUMERICS_SIMD_BAND_TOGGLE
#endif

#include <algorithm>
#include <cstring>
#include <limits>

#include "reference/row_kernels/simd_mass.hpp"
#include "reference/row_kernels/simd_vectors.hpp"

#if DRAFTPROOF_TARGET_FUSES
HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

bool tile_range(const float* x, std::size_t count, float divisor, float* quotients, TileMass* out,
                float* group_largest) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const float infinity = std::numeric_limits<float>::infinity();
  const auto limit = hn::Set(d, exp_constants::kFastLimit);
  const auto lowest = hn::Set(d, -kLogitLimit);
  const auto by = hn::Set(d, divisor);
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
      for (int which = 0; which < 2; ++which) {
        const std::size_t at = i + static_cast<std::size_t>(which) * lanes;
        auto v = hn::LoadU(d, x + at);
        if (quotients != nullptr) {
          v = hn::Div(v, by);
          hn::StoreU(v, d, quotients + at);
        }
        take(v, which);
      }
    }
    for (; i < end; i += lanes) {
      const std::size_t here = std::min(lanes, end - i);
      if (quotients != nullptr)
        for (std::size_t j = i; j < i + here; ++j) quotients[j] = x[j] / divisor;
      const Padded part((quotients != nullptr ? quotients : x) + i, here, -infinity);
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
    return scalar_row_kernels().tile_range(quotients != nullptr ? quotients : x, count, 1.0f, nullptr, out,
                                           group_largest);
  }
  *out = TileMass{};
  const float top = hn::GetLane(hn::MaxOfLanes(d, all_largest));
  if (top < -kLogitLimit) return true;
  out->n_max = exp_parts(top).n;
  out->n_min = exp_parts(hn::GetLane(hn::MinOfLanes(d, hn::Min(least[0], least[1])))).n;
  out->kept = static_cast<std::int32_t>(count - masked);
  return true;
}

// sum + bits in the lanes, those of the lower or upper half of a vector of floats, for which the mask of floats holds.
template <bool kUpper>
HWY_INLINE hn::Vec<WideTag> add_where(hn::Mask<FloatTag> mask, hn::Vec<WideTag> sum, hn::Vec<WideTag> bits) {
  const WideTag du;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  const auto half = static_cast<__mmask8>(kUpper ? mask.raw >> 8 : mask.raw);
  return hn::IfThenElse(hn::Mask<WideTag>{half}, hn::Add(sum, bits), sum);
#else
  const hn::RebindToSigned<WideTag> di;
  const hn::Half<IntTag> half_int;
  const auto lanes = hn::BitCast(IntTag(), hn::VecFromMask(FloatTag(), mask));
  const auto part = kUpper ? hn::UpperHalf(half_int, lanes) : hn::LowerHalf(half_int, lanes);
  return hn::Add(sum, hn::And(hn::BitCast(du, hn::PromoteTo(di, part)), bits));
#endif
}

// Sums of masses, in the bits of the doubles 2^52 + W_i that they are made in.
struct BandSums {
  hn::Vec<WideTag> above;
  hn::Vec<WideTag> above_in_row;
  hn::Vec<WideTag> band_in_row;

  static HWY_INLINE BandSums zero() {
    const auto zero = hn::Zero(WideTag());
    return {zero, zero, zero};
  }

  // `whole` takes away what the shift to the row's scale would, and leaves the exponent bits of the doubles alone.
  template <bool kUpper>
  HWY_INLINE void add(const float* weights, hn::Vec<WideTag> whole, hn::Mask<FloatTag> is_above,
                      hn::Mask<FloatTag> in_band) {
    const DoubleTag dd;
    const HalfFloatTag half;
    const auto w = hn::PromoteTo(dd, hn::LoadU(half, weights + (kUpper ? hn::Lanes(half) : 0)));
    const auto bits = hn::BitCast(WideTag(), hn::MulAdd(w, hn::Set(dd, 0x1p44), hn::Set(dd, 0x1p52)));
    const auto in_row = hn::And(bits, whole);
    above = add_where<kUpper>(is_above, above, bits);
    above_in_row = add_where<kUpper>(is_above, above_in_row, in_row);
    band_in_row = add_where<kUpper>(in_band, band_in_row, in_row);
  }
};

// Collects the tokens of a band. A compressed vector is written always, since whether it has tokens of the band is what
// no branch predictor knows. AVX2 compresses by tables: there the places are noted as bits and the tokens follow at the
// end.
class BandWriter {
 public:
  BandWriter(float* values, float* weights) : values_(values), weights_(weights) {}

  HWY_INLINE void add(FloatVector v, FloatVector w, hn::Mask<FloatTag> in_band, std::size_t i) {
    const FloatTag d;
    if constexpr (kCompresses) {
      hn::StoreU(hn::Compress(v, in_band), d, values_ + filled_);
      hn::StoreU(hn::Compress(w, in_band), d, weights_ + filled_);
      filled_ += hn::CountTrue(d, in_band);
    } else {
      hn::StoreMaskBits(d, in_band, bits_ + i / 8);
    }
  }

  // How many there are, once all of x[0..count) was added.
  HWY_INLINE std::size_t finish(const float* x, const float* weights, std::size_t count) {
    if constexpr (!kCompresses) {
      for (std::size_t begin = 0; begin < count; begin += 64) {
        std::uint64_t word = 0;
        std::memcpy(&word, bits_ + begin / 8, sizeof(word));
        if (count - begin < 64) word &= (std::uint64_t{1} << (count - begin)) - 1;
        for (; word != 0; word &= word - 1) {
          const std::size_t i = begin + hwy::Num0BitsBelowLS1Bit_Nonzero64(word);
          values_[filled_] = x[i];
          weights_[filled_++] = weights[i];
        }
      }
    }
    return filled_;
  }

 private:
  static constexpr bool kCompresses = HWY_TARGET != HWY_AVX2;
  float* values_;
  float* weights_;
  std::size_t filled_ = 0;
  std::uint8_t bits_[kCompresses ? 1 : kTileTokens / 8];
};

TileBand tile_band(const float* x, const float* weights, std::size_t count, std::int64_t shift, float low, float high,
                   float* band, float* band_weights) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto least = hn::Set(d, low);
  const auto most = hn::Set(d, high);
  constexpr std::int64_t kNoneLeft = 46;  // from here on no mass has a bit left
  shift = std::min(shift, kNoneLeft);
  const auto whole = hn::Set(WideTag(), ~((std::uint64_t{1} << shift) - 1));
  BandSums sums = BandSums::zero();
  BandWriter writer(band, band_weights);
  std::size_t above_count = 0;
  const auto take = [&](const float* values_at, const float* weights_at, std::size_t i) HWY_ATTR
      __attribute__((always_inline)) {
    const auto v = hn::LoadU(d, values_at);
    const auto is_above = hn::Gt(v, most);
    const auto in_band = hn::AndNot(is_above, hn::Ge(v, least));
    sums.add<false>(weights_at, whole, is_above, in_band);
    sums.add<true>(weights_at, whole, is_above, in_band);
    above_count += hn::CountTrue(d, is_above);
    writer.add(v, hn::LoadU(d, weights_at), in_band, i);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) take(x + i, weights + i, i);
  if (i < count) {
    const Padded tail(x + i, count - i, -std::numeric_limits<float>::infinity());
    const Padded tail_weights(weights + i, count - i, 0.0f);
    take(tail.values, tail_weights.values, i);
  }
  TileBand out;
  out.above_count = static_cast<std::int32_t>(above_count);
  out.band_count = static_cast<std::int32_t>(writer.finish(x, weights, count));
  // Every addition brought the exponent's bits of one double.
  const auto bias = [](std::size_t tokens) { return bit_cast<std::uint64_t>(0x1p52) * tokens; };
  out.above = sum_lanes(sums.above, 0) - bias(above_count);
  out.above_in_row = (sum_lanes(sums.above_in_row, 0) - bias(above_count)) >> shift;
  out.band_in_row = (sum_lanes(sums.band_in_row, 0) - bias(static_cast<std::size_t>(out.band_count))) >> shift;
  return out;
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
