// Residual masses of two rows in vectors.
// Read once per instruction set by row_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_NUMERICS_SIMD_RESIDUAL_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_NUMERICS_SIMD_RESIDUAL_TOGGLE
#undef DRAFTPROOF_NUMERICS_SIMD_RESIDUAL_TOGGLE
#else
#define DRAFTPROOF_NUMERICS_SIMD_RESIDUAL_TOGGLE
#endif

#include "reference/row_kernels/simd_vectors.hpp"

#if DRAFTPROOF_TARGET_FUSES
HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

// Sums of RNE(x 2^62), in the two halves of residual_mass_halves.
struct ResidualSums {
  hn::Vec<WideTag> high;
  hn::Vec<WideTag> low;

  static HWY_INLINE ResidualSums zero() { return {hn::Zero(WideTag()), hn::Zero(WideTag())}; }

  HWY_INLINE void add(DoubleVector x) {
    const DoubleTag d;
    const WideTag du;
    const auto magic = hn::Set(d, 0x1p52);
    const auto scaled = hn::Mul(x, hn::Set(d, 0x1p30));
    const auto whole = hn::Floor(scaled);
    high = hn::Add(high, hn::BitCast(du, hn::Add(whole, magic)));
    low = hn::Add(low, hn::BitCast(du, hn::MulAdd(hn::Sub(scaled, whole), hn::Set(d, 0x1p32), magic)));
  }
  HWY_INLINE TileResidual total(std::size_t additions) const {
    return carried({sum_lanes(high, additions), sum_lanes(low, additions)});
  }
};

// The same for x < 2^-10: the whole mass then fits below 2^52, where one addition rounds it.
struct SmallResidualSums {
  hn::Vec<WideTag> sum;

  static HWY_INLINE SmallResidualSums zero() { return {hn::Zero(WideTag())}; }

  HWY_INLINE void add(DoubleVector x) {
    const DoubleTag d;
    sum = hn::Add(sum, hn::BitCast(WideTag(), hn::MulAdd(x, hn::Set(d, 0x1p62), hn::Set(d, 0x1p52))));
  }
  HWY_INLINE TileResidual total(std::size_t additions) const { return carried({0, sum_lanes(sum, additions)}); }
};
constexpr float kSmallResidual = 0x1p-10f;

// Adds up a tile. Returns the largest bits of any p or q as an unsigned number.
template <class Sums>
HWY_INLINE std::uint32_t add_residuals(const float* p, const float* q, std::size_t count, TileResidual* out) {
  const FloatTag d;
  const DoubleTag dd;
  const HalfFloatTag half;
  const hn::RebindToUnsigned<FloatTag> du;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = count - count % lanes;
  const Padded tail_p(p + whole, count - whole, 0.0f);
  const Padded tail_q(q == nullptr ? tail_p.values : q + whole, q == nullptr ? 0 : count - whole, 0.0f);
  auto largest_bits = hn::Zero(du);
  Sums sums = Sums::zero();
  std::size_t additions = 0;
  for (std::size_t i = 0; i < count; i += lanes, additions += 2) {
    const bool last = i >= whole;
    __builtin_prefetch(p + i + kPrefetchTokens);
    if (q != nullptr) __builtin_prefetch(q + i + kPrefetchTokens);
    const auto target = last ? hn::Load(d, tail_p.values) : hn::LoadU(d, p + i);
    auto difference = target;
    largest_bits = hn::Max(largest_bits, hn::BitCast(du, target));
    if (q != nullptr) {
      const auto proposal = last ? hn::Load(d, tail_q.values) : hn::LoadU(d, q + i);
      largest_bits = hn::Max(largest_bits, hn::BitCast(du, proposal));
      difference = hn::Max(hn::Sub(target, proposal), hn::Zero(d));
    }
    sums.add(hn::PromoteTo(dd, hn::LowerHalf(half, difference)));
    sums.add(hn::PromoteTo(dd, hn::UpperHalf(half, difference)));
  }
  *out = sums.total(additions);
  return hn::GetLane(hn::MaxOfLanes(du, largest_bits));
}

TileResidual residual(const float* p, const float* q, std::size_t count) {
  // From +0 to 1 the bits of floats grow with them; anything else has larger bits, -0 among them, which is right too.
  // Most tiles of a large vocabulary hold small probabilities only; whether this one does is known when it is done.
  TileResidual out;
  if (add_residuals<SmallResidualSums>(p, q, count, &out) < bit_cast<std::uint32_t>(kSmallResidual)) return out;
  if (add_residuals<ResidualSums>(p, q, count, &out) <= bit_cast<std::uint32_t>(1.0f)) return out;
  return scalar_row_kernels().residual(p, q, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
