// Masses and weights of a tile in vectors.
// Read once per instruction set by row_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_NUMERICS_SIMD_MASS_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_NUMERICS_SIMD_MASS_TOGGLE
#undef DRAFTPROOF_NUMERICS_SIMD_MASS_TOGGLE
#else
#define DRAFTPROOF_NUMERICS_SIMD_MASS_TOGGLE
#endif

#include <algorithm>
#include <limits>

#include "reference/row_kernels/simd_vectors.hpp"

#if DRAFTPROOF_TARGET_FUSES
HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

// tile_weight(exp_parts(x), N_t) for |x| <= kFastLimit; `bias` is N_t plus the bits of the rounding constant. Several
// vectors at a time, step by step: each step waits for the one before it, and the other vectors fill the wait.
template <int kVectors>
HWY_INLINE void fast_weights(const FloatVector (&x)[kVectors], hn::Vec<IntTag> bias, FloatVector (&w)[kVectors]) {
  using namespace exp_constants;
  const FloatTag d;
  const IntTag di;
  FloatVector t[kVectors];
  FloatVector r[kVectors];
  for (int j = 0; j < kVectors; ++j) t[j] = hn::MulAdd(x[j], hn::Set(d, kLog2E), hn::Set(d, kRoundMagic));
  for (int j = 0; j < kVectors; ++j) {
    const FloatVector n = hn::Sub(t[j], hn::Set(d, kRoundMagic));
    r[j] = hn::NegMulAdd(n, hn::Set(d, kLn2Low), hn::NegMulAdd(n, hn::Set(d, kLn2High), x[j]));
  }
  for (int j = 0; j < kVectors; ++j) w[j] = hn::MulAdd(hn::Set(d, kC6), r[j], hn::Set(d, kC5));
  for (const float c : {kC4, kC3, kC2, 1.0f, 1.0f})
    for (int j = 0; j < kVectors; ++j) w[j] = hn::MulAdd(w[j], r[j], hn::Set(d, c));
  for (int j = 0; j < kVectors; ++j) {
    const auto k = hn::Max(hn::Sub(hn::BitCast(di, t[j]), bias), hn::Set(di, kDeepestWeight));
    w[j] = hn::BitCast(d, hn::Add(hn::BitCast(di, w[j]), hn::ShiftLeft<23>(k)));
  }
}

HWY_INLINE FloatVector fast_weight(FloatVector x, hn::Vec<IntTag> bias) {
  const FloatVector one[1] = {x};
  FloatVector w[1];
  fast_weights<1>(one, bias, w);
  return w[0];
}

// Adds to the accumulators the bits of 2^52 + mass_of_weight(w): the bias is taken off once at the end.
HWY_INLINE void accumulate_mass(FloatVector w, hn::Vec<WideTag>& low, hn::Vec<WideTag>& high) {
  const DoubleTag dd;
  const WideTag du;
  const HalfFloatTag half;
  const auto scale = hn::Set(dd, 0x1p44);
  const auto magic = hn::Set(dd, 0x1p52);
  const auto a = hn::MulAdd(hn::PromoteTo(dd, hn::LowerHalf(half, w)), scale, magic);
  const auto b = hn::MulAdd(hn::PromoteTo(dd, hn::UpperHalf(half, w)), scale, magic);
  low = hn::Add(low, hn::BitCast(du, a));
  high = hn::Add(high, hn::BitCast(du, b));
}

// Sums over a tile whose extremes are known.
struct MassSums {
  hn::Vec<WideTag> low;
  hn::Vec<WideTag> high;
  std::int32_t kept;  // tokens that are not masked, where some are

  static HWY_INLINE MassSums zero() { return {hn::Zero(WideTag()), hn::Zero(WideTag()), 0}; }

  // The next kVectors vectors; writes their weights, where `weights` is wanted.
  template <int kVectors, bool kStores, bool kHasMasked>
  HWY_INLINE void add(const float* x, hn::Vec<IntTag> bias, float* weights) {
    const FloatTag d;
    const std::size_t lanes = hn::Lanes(d);
    FloatVector v[kVectors];
    FloatVector w[kVectors];
    for (int j = 0; j < kVectors; ++j) v[j] = hn::LoadU(d, x + static_cast<std::size_t>(j) * lanes);
    fast_weights<kVectors>(v, bias, w);
    for (int j = 0; j < kVectors; ++j) {
      if (kHasMasked) {
        // Values below are masked, whatever number engines mask with. No weight of a token that is not masked is zero,
        // however deep (see tile_weight).
        w[j] = hn::IfThenElseZero(hn::Ge(v[j], hn::Set(d, -kLogitLimit)), w[j]);
        if (!kStores) kept += static_cast<std::int32_t>(hn::CountTrue(d, hn::Gt(w[j], hn::Zero(d))));
      }
      if (kStores) hn::StoreU(w[j], d, weights + static_cast<std::size_t>(j) * lanes);
      accumulate_mass(w[j], low, high);
    }
  }
};

// Adds up the masses of a tile and, if kStores, writes the weights. Returns how many tokens are not masked, if
// !kStores.
template <bool kStores, bool kHasMasked>
HWY_INLINE std::int32_t sum_masses(const float* x, std::size_t count, std::int32_t n_max, float* weights,
                                   std::uint64_t* sum) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto bias = hn::Set(IntTag(), n_max + bit_cast<std::int32_t>(exp_constants::kRoundMagic));
  MassSums sums = MassSums::zero();
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    // While this tile computes, memory fetches the next one of the row: hardware looks ahead only as far as the page
    // ends.
    constexpr std::size_t kLineTokens = 16;
    for (std::size_t j = 0; j < 4 * lanes; j += std::max(lanes, kLineTokens))
      __builtin_prefetch(x + i + j + kTileTokens);
    sums.add<4, kStores, kHasMasked>(x + i, bias, kStores ? weights + i : nullptr);
  }
  for (; i + lanes <= count; i += lanes) sums.add<1, kStores, kHasMasked>(x + i, bias, kStores ? weights + i : nullptr);
  std::size_t vectors = i / lanes;
  if (!kHasMasked) sums.kept = static_cast<std::int32_t>(count);
  if (i < count) {
    const Padded tail(x + i, count - i, -std::numeric_limits<float>::infinity());
    alignas(64) float last[64];
    const std::int32_t kept = sums.kept;
    sums.add<1, kStores, true>(tail.values, bias, last);
    if (!kHasMasked) sums.kept = kept;
    if (kStores) std::copy_n(last, count - i, weights + i);
    ++vectors;
  }
  *sum = sum_lanes(hn::Add(sums.low, sums.high), 2 * vectors);
  return sums.kept;
}

bool tile_mass(const float* x, std::size_t count, TileMass* out) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = count - count % lanes;
  const float infinity = std::numeric_limits<float>::infinity();
  const Padded tail(x + whole, count - whole, -infinity);
  const auto limit = hn::Set(d, exp_constants::kFastLimit);
  const auto masked = hn::Set(d, -infinity);
  const auto lowest = hn::Set(d, -kLogitLimit);

  // First the extremes: N_t is the exponent of the largest logit, since n is monotone in x.
  FloatVector largest = masked;
  FloatVector smallest = hn::Set(d, infinity);
  auto all_plain = hn::Eq(masked, masked);
  auto all_plain_or_masked = all_plain;
  for (std::size_t i = 0; i < count; i += lanes) {
    const FloatVector v = i < whole ? hn::LoadU(d, x + i) : hn::Load(d, tail.values);
    const auto plain = hn::Le(hn::Abs(v), limit);
    const auto is_masked = hn::Lt(v, lowest);
    all_plain = hn::And(all_plain, plain);
    all_plain_or_masked = hn::And(all_plain_or_masked, hn::Or(plain, is_masked));
    largest = hn::Max(largest, v);
    smallest = hn::Min(smallest, hn::IfThenElse(is_masked, hn::Set(d, infinity), v));
  }
  if (!hn::AllTrue(d, all_plain_or_masked)) return scalar_row_kernels().tile_mass(x, count, out);
  const float top = hn::GetLane(hn::MaxOfLanes(d, largest));
  *out = TileMass{};
  if (top < -kLogitLimit) return true;
  out->n_max = exp_parts(top).n;
  out->n_min = exp_parts(hn::GetLane(hn::MinOfLanes(d, smallest))).n;
  out->kept = hn::AllTrue(d, all_plain) ? sum_masses<false, false>(x, count, out->n_max, nullptr, &out->sum)
                                        : sum_masses<false, true>(x, count, out->n_max, nullptr, &out->sum);
  return true;
}

std::uint64_t weigh_tile(const float* x, std::size_t count, const TileMass& range, float* weights) {
  // Exponents strictly within those of the fast limit say that every logit is within it.
  constexpr std::int32_t kFastExponent = 94548;
  if (range.n_max >= kFastExponent || (range.n_min <= -kFastExponent && range.n_min != kMaskedExponent))
    return scalar_row_kernels().weigh_tile(x, count, range, weights);
  std::uint64_t sum = 0;
  if (static_cast<std::size_t>(range.kept) == count)
    sum_masses<true, false>(x, count, range.n_max, weights, &sum);
  else if (range.kept > 0)
    sum_masses<true, true>(x, count, range.n_max, weights, &sum);
  else
    std::fill_n(weights, count, 0.0f);
  return sum;
}

void tile_weights(const float* x, std::size_t count, std::int32_t n_max, float* weights) {
  const FloatTag d;
  const IntTag di;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = count - count % lanes;
  const Padded tail(x + whole, count - whole, -std::numeric_limits<float>::infinity());
  const auto limit = hn::Set(d, exp_constants::kFastLimit);
  const auto lowest = hn::Set(d, -kLogitLimit);
  const auto bias = hn::Set(di, n_max + bit_cast<std::int32_t>(exp_constants::kRoundMagic));
  auto all_plain_or_masked = hn::Eq(limit, limit);
  const auto weight_at = [&](FloatVector v) HWY_ATTR {
    all_plain_or_masked = hn::And(all_plain_or_masked, hn::Or(hn::Le(hn::Abs(v), limit), hn::Lt(v, lowest)));
    return hn::IfThenElseZero(hn::Ge(v, lowest), fast_weight(v, bias));
  };
  for (std::size_t i = 0; i < whole; i += lanes) {
    __builtin_prefetch(x + i + kPrefetchTokens);
    hn::StoreU(weight_at(hn::LoadU(d, x + i)), d, weights + i);
  }
  if (whole < count) {
    alignas(64) float last[64];
    hn::Store(weight_at(hn::Load(d, tail.values)), d, last);
    std::copy_n(last, count - whole, weights + whole);
  }
  if (!hn::AllTrue(d, all_plain_or_masked)) scalar_row_kernels().tile_weights(x, count, n_max, weights);
}

TileKept keep_in_tile(const float* x, std::size_t count, const TileCut& cut, float* weights) {
  const FloatTag d;
  const DoubleTag dd;
  const HalfFloatTag half;
  const std::size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(dd, 0x1p44);
  const auto magic = hn::Set(dd, 0x1p52);
  const auto least = hn::Set(dd, cut.least_mass);
  const auto last_value = hn::Set(d, cut.last_value);
  auto low = hn::Zero(WideTag());
  auto high = hn::Zero(WideTag());
  TileKept out;
  std::size_t vectors = 0;
  const auto keep = [&](FloatVector v, FloatVector w, std::size_t begin) HWY_ATTR {
    // Tokens of the last value that stand before the cut stay.
    const std::size_t before = cut.position > begin ? std::min(cut.position - begin, lanes) : 0;
    const auto ties = hn::And(hn::FirstN(d, before), hn::Eq(v, last_value));
    auto kept = hn::IfThenElseZero(hn::Or(hn::Gt(v, last_value), ties), w);
    if (cut.least_mass > 0.0) {
      // mass_of_weight, as doubles.
      const auto enough = [&](auto part) HWY_ATTR {
        return hn::Ge(hn::Sub(hn::MulAdd(hn::PromoteTo(dd, part), scale, magic), magic), least);
      };
      const auto ones = hn::Set(dd, 1.0);
      const auto lower = hn::DemoteTo(half, hn::IfThenElseZero(enough(hn::LowerHalf(half, kept)), ones));
      const auto upper = hn::DemoteTo(half, hn::IfThenElseZero(enough(hn::UpperHalf(half, kept)), ones));
      const auto both = hn::Combine(d, upper, lower);
      kept = hn::IfThenElseZero(hn::Gt(both, hn::Zero(d)), kept);
    }
    accumulate_mass(kept, low, high);
    out.kept += static_cast<std::int32_t>(hn::CountTrue(d, hn::Gt(kept, hn::Zero(d))));
    ++vectors;
    return kept;
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(keep(hn::LoadU(d, x + i), hn::LoadU(d, weights + i), i), d, weights + i);
  if (i < count) {
    const Padded tail(x + i, count - i, -std::numeric_limits<float>::infinity());
    const Padded tail_weights(weights + i, count - i, 0.0f);
    alignas(64) float last[64];
    hn::Store(keep(hn::Load(d, tail.values), hn::Load(d, tail_weights.values), i), d, last);
    std::copy_n(last, count - i, weights + i);
  }
  out.sum = sum_lanes(hn::Add(low, high), 2 * vectors);
  return out;
}

std::uint64_t weight_sum(const float* weights, std::size_t count) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = count - count % lanes;
  const Padded tail(weights + whole, count - whole, 0.0f);
  auto low = hn::Zero(WideTag());
  auto high = hn::Zero(WideTag());
  std::size_t vectors = 0;
  for (std::size_t i = 0; i < count; i += lanes, ++vectors)
    accumulate_mass(i < whole ? hn::LoadU(d, weights + i) : hn::Load(d, tail.values), low, high);
  return sum_lanes(hn::Add(low, high), 2 * vectors);
}

void log_weights_of(const float* x, const float* weights, std::size_t count, double* out) {
  const FloatTag d;
  const DoubleTag dd;
  const HalfFloatTag half;
  const std::size_t lanes = hn::Lanes(d);
  const auto none = hn::Set(d, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto counts =
        weights == nullptr ? hn::Ge(v, hn::Set(d, -kLogitLimit)) : hn::Gt(hn::LoadU(d, weights + i), hn::Zero(d));
    const auto kept = hn::IfThenElse(counts, v, none);
    hn::StoreU(hn::PromoteTo(dd, hn::LowerHalf(half, kept)), dd, out + i);
    hn::StoreU(hn::PromoteTo(dd, hn::UpperHalf(half, kept)), dd, out + i + lanes / 2);
  }
  scalar_row_kernels().log_weights_of(x + i, weights == nullptr ? nullptr : weights + i, count - i, out + i);
}

void scale_weights(const float* weights, std::size_t count, float power, float reciprocal, float* out) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, weights + i), hn::Set(d, power)), hn::Set(d, reciprocal)), d, out + i);
  for (; i < count; ++i) out[i] = (weights[i] * power) * reciprocal;
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
