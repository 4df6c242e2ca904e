// The row kernels in Google Highway, compiled once per instruction set. Targets without a fused multiply-add (SSE)
// would round twice in MulAdd, so they use the scalar set instead.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/numerics/row_kernels_simd.cpp"
#include <hwy/foreach_target.h>
// Highway's own header order: foreach_target before highway.
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "reference/numerics/row_kernels.hpp"
#include "reference/random/philox.hpp"

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSE2 || HWY_TARGET == HWY_SSSE3 || \
    HWY_TARGET == HWY_SSE4

RowKernels kernels_of_target() {
  return scalar_row_kernels();
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using DoubleTag = hn::ScalableTag<double>;
using WideTag = hn::RebindToUnsigned<DoubleTag>;
using HalfFloatTag = hn::Half<FloatTag>;
using FloatVector = hn::Vec<FloatTag>;
using DoubleVector = hn::Vec<DoubleTag>;

// The last vector of a tile is read from a padded copy, so that every element takes the one vector path.
struct Padded {
  alignas(64) float values[64];
  Padded(const float* from, std::size_t count, float padding) {
    std::fill_n(values, 64, padding);
    std::copy_n(from, count, values);
  }
};

HWY_INLINE FloatVector polynomial(FloatVector r) {
  using namespace exp_constants;
  const FloatTag d;
  FloatVector p = hn::Set(d, kC6);
  p = hn::MulAdd(p, r, hn::Set(d, kC5));
  p = hn::MulAdd(p, r, hn::Set(d, kC4));
  p = hn::MulAdd(p, r, hn::Set(d, kC3));
  p = hn::MulAdd(p, r, hn::Set(d, kC2));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::MulAdd(p, r, hn::Set(d, 1.0f));
}

// tile_weight(exp_parts(x), N_t) for |x| <= kFastLimit; `bias` is N_t plus the bits of the rounding constant.
HWY_INLINE FloatVector fast_weight(FloatVector x, hn::Vec<IntTag> bias) {
  using namespace exp_constants;
  const FloatTag d;
  const IntTag di;
  const FloatVector t = hn::MulAdd(x, hn::Set(d, kLog2E), hn::Set(d, kRoundMagic));
  const FloatVector n = hn::Sub(t, hn::Set(d, kRoundMagic));
  FloatVector r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
  const FloatVector f = polynomial(r);
  const auto k = hn::Max(hn::Sub(hn::BitCast(di, t), bias), hn::Set(di, kDeepestWeight));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, f), hn::ShiftLeft<23>(k)));
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

bool tile_mass(const float* x, std::size_t count, float* weights, TileMass* out) {
  const FloatTag d;
  const IntTag di;
  const WideTag du;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = count - count % lanes;
  const float infinity = std::numeric_limits<float>::infinity();
  const Padded tail(x + whole, count - whole, -infinity);
  const auto limit = hn::Set(d, exp_constants::kFastLimit);
  const auto masked = hn::Set(d, -infinity);
  const auto lowest = hn::Set(d, -kLogitLimit);  // what lies below is masked, whatever number engines mask with

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
  if (!hn::AllTrue(d, all_plain_or_masked)) return scalar_row_kernels().tile_mass(x, count, weights, out);
  const float top = hn::GetLane(hn::MaxOfLanes(d, largest));
  *out = TileMass{};
  if (top < -kLogitLimit) {
    if (weights != nullptr) std::fill_n(weights, count, 0.0f);
    return true;
  }
  out->n_max = exp_parts(top).n;
  out->n_min = exp_parts(hn::GetLane(hn::MinOfLanes(d, smallest))).n;

  const auto bias = hn::Set(di, out->n_max + bit_cast<std::int32_t>(exp_constants::kRoundMagic));
  auto low = hn::Zero(du);
  auto high = hn::Zero(du);
  const auto weight_at = [&](FloatVector v) HWY_ATTR {
    const auto w = fast_weight(v, bias);
    return hn::IfThenElseZero(hn::Ge(v, lowest), w);
  };
  // No weight of a token that is not masked is zero, however deep (see tile_weight).
  const auto kept_lanes = [&](FloatVector w)
                              HWY_ATTR { return static_cast<std::int32_t>(hn::CountTrue(d, hn::Gt(w, hn::Zero(d)))); };
  // While this tile computes, memory fetches the next one of the row: hardware looks ahead only as far as the page
  // ends.
  const auto prefetch_next_tile = [&](std::size_t i) HWY_ATTR { __builtin_prefetch(x + i + kTileTokens); };
  if (hn::AllTrue(d, all_plain)) {
    out->kept = static_cast<std::int32_t>(whole);
    for (std::size_t i = 0; i < whole; i += lanes) {
      const auto w = fast_weight(hn::LoadU(d, x + i), bias);
      prefetch_next_tile(i);
      if (weights != nullptr) hn::StoreU(w, d, weights + i);
      accumulate_mass(w, low, high);
    }
  } else {
    for (std::size_t i = 0; i < whole; i += lanes) {
      const auto w = weight_at(hn::LoadU(d, x + i));
      prefetch_next_tile(i);
      out->kept += kept_lanes(w);
      if (weights != nullptr) hn::StoreU(w, d, weights + i);
      accumulate_mass(w, low, high);
    }
  }
  std::size_t vectors = whole / lanes;
  if (whole < count) {
    const auto w = weight_at(hn::Load(d, tail.values));
    out->kept += kept_lanes(w);
    accumulate_mass(w, low, high);
    ++vectors;
    if (weights != nullptr) {
      alignas(64) float last[64];
      hn::Store(w, d, last);
      std::copy_n(last, count - whole, weights + whole);
    }
  }
  out->sum = sum_lanes(hn::Add(low, high), 2 * vectors);
  return true;
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

void scale_weights(const float* weights, std::size_t count, float power, float reciprocal, float* out) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, weights + i), hn::Set(d, power)), hn::Set(d, reciprocal)), d, out + i);
  for (; i < count; ++i) out[i] = (weights[i] * power) * reciprocal;
}

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

TileExtremum maximum(const float* x, std::size_t count) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = count - count % lanes;
  const float infinity = std::numeric_limits<float>::infinity();
  const Padded tail(x + whole, count - whole, -infinity);
  FloatVector largest = hn::Set(d, -infinity);
  auto valid = hn::Eq(largest, largest);
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto v = i < whole ? hn::LoadU(d, x + i) : hn::Load(d, tail.values);
    valid = hn::And(valid, hn::Lt(v, hn::Set(d, infinity)));
    largest = hn::Max(largest, v);
  }
  if (!hn::AllTrue(d, valid)) return scalar_row_kernels().maximum(x, count);
  const float top = hn::GetLane(hn::MaxOfLanes(d, largest));
  // -0 and +0 are one value: the first element that equals the maximum is what the scalar loop finds.
  const auto index = top == -infinity ? 0 : std::find(x, x + count, top) - x;
  return {x[index], static_cast<std::int32_t>(index), true};
}

HWY_INLINE DoubleVector vector_log(DoubleVector x) {
  using namespace log_constants;
  const DoubleTag d;
  const hn::RebindToSigned<DoubleTag> di;
  const WideTag du;
  // natural_log for normal x: every value the race takes a logarithm of lies in [2^-34, 32].
  const auto offset = hn::Sub(hn::BitCast(du, x), hn::Set(du, kSqrtHalfBits));
  const auto m =
      hn::BitCast(d, hn::Add(hn::And(offset, hn::Set(du, 0x000fffffffffffffULL)), hn::Set(du, kSqrtHalfBits)));
  // The exponent, a small signed number, becomes a double through the 1.5 * 2^52 constant.
  const auto exponent = hn::ShiftRight<52>(hn::BitCast(di, offset));
  const auto magic = hn::Set(d, 0x1.8p52);
  const auto k = hn::Sub(hn::BitCast(d, hn::Add(exponent, hn::BitCast(di, magic))), magic);
  const auto f = hn::Sub(m, hn::Set(d, 1.0));
  const auto s = hn::Div(f, hn::Add(hn::Set(d, 2.0), f));
  const auto z = hn::Mul(s, s);
  auto p = hn::Set(d, kP6);
  p = hn::MulAdd(p, z, hn::Set(d, kP5));
  p = hn::MulAdd(p, z, hn::Set(d, kP4));
  p = hn::MulAdd(p, z, hn::Set(d, kP3));
  p = hn::MulAdd(p, z, hn::Set(d, kP2));
  p = hn::MulAdd(p, z, hn::Set(d, kP1));
  p = hn::MulAdd(p, z, hn::Set(d, kP0));
  const auto correction = hn::Mul(s, hn::NegMulAdd(z, p, f));
  return hn::MulAdd(k, hn::Set(d, kLn2High), hn::Sub(f, hn::Sub(correction, hn::Mul(k, hn::Set(d, kLn2Low)))));
}

// Philox4x32-10 in four vectors of 64-bit lanes, one block a lane; words live in the low halves. The constants are
// those of Salmon et al.; the tests hold every lane against Random123.
struct PhiloxLanes {
  hn::Vec<WideTag> word[4];
};

HWY_INLINE PhiloxLanes philox_lanes(hn::Vec<WideTag> index, const NoiseAddress& noise) {
  const WideTag du;
  const hn::Repartition<std::uint32_t, WideTag> d32;
  const auto low_mask = hn::Set(du, 0xffffffffULL);
  auto c0 = index;
  auto c1 = hn::Set(du, std::uint64_t{noise.row});
  auto c2 = hn::Set(du, std::uint64_t{noise.step});
  auto c3 = hn::Set(du, std::uint64_t{noise.purpose});
  std::uint32_t k0 = noise.key[0];
  std::uint32_t k1 = noise.key[1];
  const auto m0 = hn::Set(du, std::uint64_t{0xD2511F53});
  const auto m1 = hn::Set(du, std::uint64_t{0xCD9E8D57});
  for (int round = 0; round < 10; ++round) {
    const auto product0 = hn::MulEven(hn::BitCast(d32, c0), hn::BitCast(d32, m0));
    const auto product1 = hn::MulEven(hn::BitCast(d32, c2), hn::BitCast(d32, m1));
    const auto n0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1), hn::Set(du, std::uint64_t{k0}));
    const auto n2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), hn::Set(du, std::uint64_t{k1}));
    c1 = hn::And(product1, low_mask);
    c3 = hn::And(product0, low_mask);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

RaceWinner race(const double* log_weights, std::size_t count, std::uint32_t first_token, const NoiseAddress& noise) {
  const DoubleTag d;
  const WideTag du;
  const std::size_t lanes = hn::Lanes(d);
  const auto magic = hn::Set(d, 0x1p52);
  const auto one = hn::Set(d, 1.0);
  // Lane j of a group of 4 * lanes tokens holds block j; word w of it belongs to token 4 j + w.
  alignas(64) double scores[32];
  RaceWinner best{-std::numeric_limits<double>::infinity(), -1};
  const std::size_t group = 4 * lanes;
  for (std::size_t i = 0; i < count; i += group) {
    const auto index = hn::Add(hn::Set(du, std::uint64_t{(first_token + i) / 4}), hn::Iota(du, 0));
    const PhiloxLanes blocks = philox_lanes(index, noise);
    for (std::size_t w = 0; w < 4; ++w) {
      // r as a double, exact, through the bits of 2^52 + r.
      const auto r = hn::Sub(hn::BitCast(d, hn::Or(blocks.word[w], hn::BitCast(du, magic))), magic);
      const auto v = hn::Mul(hn::Add(r, hn::Set(d, 0.5)), hn::Set(d, 0x1p-32));
      const auto exponential = hn::Neg(vector_log(hn::Sub(one, v)));
      hn::Store(hn::Neg(vector_log(exponential)), d, scores + w * lanes);
    }
    const std::size_t here = std::min(group, count - i);
    for (std::size_t j = 0; j < here; ++j) {
      const double score = log_weights[i + j] + scores[(j % 4) * lanes + j / 4];
      if (score > best.score) best = {score, static_cast<std::int64_t>(first_token + i + j)};
    }
  }
  return best;
}

void convert_f16(const std::uint16_t* in, std::size_t count, float* out) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto half = hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(in + i));
    const FloatVector v = hn::PromoteTo(d, half);
    hn::StoreU(v, d, out + i);
    // The instruction quiets a signalling NaN, the definition does not.
    if (!hn::AllTrue(d, hn::Eq(v, v))) scalar_row_kernels().convert_f16(in + i, lanes, out + i);
  }
  scalar_row_kernels().convert_f16(in + i, count - i, out + i);
}

void convert_bf16(const std::uint16_t* in, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16);
}

RowKernels kernels_of_target() {
  return {hwy::TargetName(HWY_TARGET),
          tile_mass,
          weight_sum,
          scale_weights,
          residual,
          maximum,
          race,
          convert_f16,
          convert_bf16};
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

#include "reference/error.hpp"

namespace draftproof {

HWY_EXPORT(kernels_of_target);

std::vector<RowKernels> available_row_kernels() {
  std::vector<RowKernels> found{scalar_row_kernels()};
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    const RowKernels kernels = HWY_DYNAMIC_DISPATCH(kernels_of_target)();
    if (std::strcmp(kernels.target, "scalar") != 0) found.push_back(kernels);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return found;
}

namespace {
RowKernels& chosen_row_kernels() {
  static RowKernels chosen = HWY_DYNAMIC_DISPATCH(kernels_of_target)();
  return chosen;
}
}  // namespace

const RowKernels& row_kernels() {
  return chosen_row_kernels();
}

void select_row_kernels(const std::string& target) {
  std::string names;
  for (const RowKernels& kernels : available_row_kernels()) {
    if (target == kernels.target) {
      chosen_row_kernels() = kernels;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(kernels.target);
  }
  throw usage_error("--simd", "'" + target + "' is not one of the sets this processor runs: " + names);
}

}  // namespace draftproof
#endif
