// The race in vectors: Philox, the logarithm, the winner.
// Read once per instruction set by row_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_NUMERICS_SIMD_RACE_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_NUMERICS_SIMD_RACE_TOGGLE
#undef DRAFTPROOF_NUMERICS_SIMD_RACE_TOGGLE
#else
#define DRAFTPROOF_NUMERICS_SIMD_RACE_TOGGLE
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/row_kernels/simd_vectors.hpp"

#if DRAFTPROOF_TARGET_FUSES
HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

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

// Philox4x32-10 in four vectors of 64-bit lanes, one block a lane. The words are the low halves; the high halves hold
// what a multiplication of low halves does not see. The constants are those of Salmon et al.; the tests hold every lane
// against Random123.
struct PhiloxLanes {
  hn::Vec<WideTag> word[4];
};

HWY_INLINE PhiloxLanes philox_lanes(hn::Vec<WideTag> index, const NoiseAddress& noise) {
  const WideTag du;
  const hn::Repartition<std::uint32_t, WideTag> d32;
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
    c0 = hn::Xor3(hn::ShiftRight<32>(product1), c1, hn::Set(du, std::uint64_t{k0}));
    c2 = hn::Xor3(hn::ShiftRight<32>(product0), c3, hn::Set(du, std::uint64_t{k1}));
    c1 = product1;
    c3 = product0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Gumbel noise of the low halves of `word`: gumbel_noise of every lane.
HWY_INLINE DoubleVector vector_gumbel(hn::Vec<WideTag> word) {
  const DoubleTag d;
  const WideTag du;
  const auto magic = hn::Set(d, 0x1p52);
  // r as a double, exact, through the bits of 2^52 + r.
  const auto low = hn::And(word, hn::Set(du, 0xffffffffULL));
  const auto r = hn::Sub(hn::BitCast(d, hn::Or(low, hn::BitCast(du, magic))), magic);
  const auto v = hn::Mul(hn::Add(r, hn::Set(d, 0.5)), hn::Set(d, 0x1p-32));
  const auto exponential = hn::Neg(vector_log(hn::Sub(hn::Set(d, 1.0), v)));
  return hn::Neg(vector_log(exponential));
}

// An upper bound, up to a margin for roundings, of log weight + Gumbel noise for vectors of floats, less the score that
// is to be beaten. With v = (r + 1/2) 2^-32 the noise is -log(-log(1 - v)) <= -log v, and the bits of a float, read as
// an integer, are a lower bound of its logarithm to base 2. Whoever cannot beat the score by this bound is left out
// without a logarithm.
class ScoreBound {
 public:
  explicit ScoreBound(double best) {
    // Rounded up, so that it stays a bound where weights are huge.
    const float offset = static_cast<float>(kLargestNoise - best);
    offset_ = std::nextafter(offset, std::numeric_limits<float>::infinity());
  }
  // Can any noise make these weights win?
  HWY_INLINE hn::Mask<FloatTag> may_win(FloatVector log_weights) const {
    const FloatTag d;
    return hn::Ge(hn::Add(log_weights, hn::Set(d, offset_)), hn::Set(d, -kMargin));
  }
  // And this one, of the words r?
  HWY_INLINE hn::Mask<FloatTag> may_win(FloatVector log_weights, hn::Vec<hn::RebindToUnsigned<FloatTag>> r) const {
    const FloatTag d;
    const IntTag di;
    // 2 floor(r / 2) + 1/2, not above r + 1/2: the instructions convert signed numbers.
    const auto half = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(r)));
    const auto at_most = hn::MulAdd(half, hn::Set(d, 2.0f), hn::Set(d, 0.5f));
    const auto log2_above_least =
        hn::ConvertTo(d, hn::Sub(hn::BitCast(di, at_most), hn::Set(di, bit_cast<std::int32_t>(0.5f))));
    const auto bound =
        hn::NegMulAdd(log2_above_least, hn::Set(d, kLn2 * 0x1p-23f), hn::Add(log_weights, hn::Set(d, offset_)));
    return hn::Ge(bound, hn::Set(d, -kMargin));
  }

 private:
  static constexpr float kLn2 = 0.69314718f;
  static constexpr double kLargestNoise = 33 * 0.6931471805599453;
  // Above what the roundings of these floats can add up to near 0.
  static constexpr float kMargin = 1e-3f;
  float offset_;
};

RaceWinner race(const double* log_weights, std::size_t count, std::uint32_t first_token, const NoiseAddress& noise,
                RaceWinner best) {
  const FloatTag d;
  const DoubleTag dd;
  const HalfFloatTag half;
  const WideTag du;
  const hn::RebindToUnsigned<FloatTag> d32;
  const std::size_t lanes = hn::Lanes(dd);
  // Even lanes hold the first half of a group's blocks, odd lanes the second, so that interleaving the words of the
  // lanes puts them in the order of the tokens.
  HWY_ALIGN std::uint64_t order[hn::MaxLanes(du)];
  for (std::size_t j = 0; j < lanes; ++j) order[j] = j / 2 + (j % 2) * (lanes / 2);
  const auto iota = hn::Load(du, order);
  const std::size_t group = 4 * lanes;
  HWY_ALIGN double scores[4 * hn::MaxLanes(dd)];
  HWY_ALIGN double padded[4 * hn::MaxLanes(dd)];
  ScoreBound bound(best.score);
  for (std::size_t i = 0; i < count; i += group) {
    const double* here = log_weights + i;
    if (i + group > count) {
      std::fill_n(padded, group, -std::numeric_limits<double>::infinity());
      std::copy_n(here, count - i, padded);
      here = padded;
    }
    const auto floats_at = [&](std::size_t at) HWY_ATTR {
      const auto lower = hn::DemoteTo(half, hn::LoadU(dd, here + at));
      const auto upper = hn::DemoteTo(half, hn::LoadU(dd, here + at + lanes));
      const auto rounded = hn::Combine(d, upper, lower);
      // Not below the weight itself; -infinity becomes a NaN, which wins no comparison.
      return hn::MulAdd(hn::Abs(rounded), hn::Set(d, 0x1p-23f), rounded);
    };
    const FloatVector first = floats_at(0);
    const FloatVector second = floats_at(2 * lanes);
    if (hn::AllFalse(d, hn::Or(bound.may_win(first), bound.may_win(second)))) continue;
    const auto index = hn::Add(hn::Set(du, std::uint64_t{(first_token + i) / 4}), iota);
    const PhiloxLanes blocks = philox_lanes(index, noise);
    // Words 0 and 1, then 2 and 3 of a block in one 64-bit lane.
    const auto low_mask = hn::Set(du, 0xffffffffULL);
    const auto words01 = hn::Or(hn::And(blocks.word[0], low_mask), hn::ShiftLeft<32>(blocks.word[1]));
    const auto words23 = hn::Or(hn::And(blocks.word[2], low_mask), hn::ShiftLeft<32>(blocks.word[3]));
    const auto r_first = hn::BitCast(d32, hn::InterleaveLower(du, words01, words23));
    const auto r_second = hn::BitCast(d32, hn::InterleaveUpper(du, words01, words23));
    if (hn::AllFalse(d, hn::Or(bound.may_win(first, r_first), bound.may_win(second, r_second)))) continue;
    // Lane j, word w belongs to token 4 order[j] + w.
    for (std::size_t w = 0; w < 4; ++w) hn::Store(vector_gumbel(blocks.word[w]), dd, scores + w * lanes);
    for (std::size_t j = 0; j < std::min(group, count - i); ++j) {
      const std::size_t block = j / 4;
      const std::size_t lane = block < lanes / 2 ? 2 * block : 2 * (block - lanes / 2) + 1;
      const double score = log_weights[i + j] + scores[(j % 4) * lanes + lane];
      if (score > best.score) best = {score, static_cast<std::int64_t>(first_token + i + j)};
    }
    bound = ScoreBound(best.score);
  }
  return best;
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
