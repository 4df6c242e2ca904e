// Fixed-point masses: a float becomes an integer before it is summed, so that sums are exact and have no order.
//
//   token of a logits row   W_i = RNE(f_i 2^(n_i - N_t) 2^44)      in the scale of its tile t
//   tile                    S_t = sum of W_i over the tile,         row scale M_t = S_t >> (N - N_t)
//   row                     S = sum of M_t < 2^19 * 1.5 * 2^44 < 2^64 for V <= 2^19
//   probability             p_i = RN(RN(f_i 2^(n_i - N)) r),        r = RN(1 / RN(S 2^-44))
//   residual of two rows    RNE(max(p_i - q_i, 0) 2^62)
#pragma once

#include <cstdint>

#include "reference/numerics/exp_parts.hpp"
#include "reference/numerics/natural_log.hpp"

namespace draftproof {

inline constexpr std::int32_t kMassBits = 44;      // fraction bits of a token's mass in its tile
inline constexpr std::int32_t kResidualBits = 62;  // fraction bits of a residual or probability mass
inline constexpr std::int32_t kTileTokens = 4096;  // part of the contract: tiles are cut at multiples of this
inline constexpr std::int64_t kVocabularyLimit = std::int64_t{1} << 19;

// Below this relative exponent a weight kept as a float would lose bits (see tile_weight), though its mass is long
// zero.
inline constexpr std::int32_t kDeepestWeight = -125;

// Round to nearest even of a double in [0, 2^52).
DRAFTPROOF_HD inline std::uint64_t round_to_integer(double x) {
  return bit_cast<std::uint64_t>(x + 0x1p52) - bit_cast<std::uint64_t>(0x1p52);
}

// f 2^(n - N_t) as a float: exact when n - N_t >= kDeepestWeight, else held at that exponent. From it come W_i (zero in
// either case when so deep) and, where the tile is not deep, p_i.
DRAFTPROOF_HD inline float tile_weight(const ExpParts& parts, std::int32_t tile_exponent) {
  if (parts.f == 0.0f) return 0.0f;
  const std::int32_t k = parts.n - tile_exponent;
  return scale_by_power_of_two(parts.f, k < kDeepestWeight ? kDeepestWeight : k);
}

DRAFTPROOF_HD inline std::uint64_t mass_of_weight(float tile_weight) {
  return round_to_integer(static_cast<double>(tile_weight) * 0x1p44);
}

// S_t or W_i in the scale of the row: shifted down by how far the tile's exponent lies below the row's.
DRAFTPROOF_HD inline std::uint64_t row_scale(std::uint64_t mass, std::int32_t row_exponent,
                                             std::int32_t tile_exponent) {
  const std::int64_t shift = static_cast<std::int64_t>(row_exponent) - tile_exponent;
  return shift > 63 ? 0 : mass >> shift;
}

// RN(S 2^-44): the sum of exponentials relative to 2^N.
DRAFTPROOF_HD inline float float_total(std::uint64_t total) {
  return static_cast<float>(total) * 0x1p-44f;
}

DRAFTPROOF_HD inline float reciprocal_total(std::uint64_t total) {
  return 1.0f / float_total(total);
}

// p_i, the one written expression.
DRAFTPROOF_HD inline float probability_of(const ExpParts& parts, std::int32_t row_exponent, float reciprocal) {
  if (parts.f == 0.0f) return 0.0f;
  return scale_by_power_of_two(parts.f, parts.n - row_exponent) * reciprocal;
}

// log(S 2^-44) in double, once a row; the log-probability of a token with logit x is x - N ln 2 - log_total.
DRAFTPROOF_HD inline double log_total(std::uint64_t total) {
  return natural_log(static_cast<double>(total) * 0x1p-44);
}

DRAFTPROOF_HD inline float log_probability_of(float logit, std::int32_t row_exponent, double log_total) {
  using namespace log_constants;
  const double n = static_cast<double>(row_exponent);
  double t = std::fma(-n, kLn2High, static_cast<double>(logit));
  t = std::fma(-n, kLn2Low, t);
  return static_cast<float>(t - log_total);
}

// RNE(x 2^62) for x in [0, 2), a float or a double: in two halves, because a double holds 53 bits. The high half is a
// multiple of 2^32 and even, so rounding the low half to nearest even rounds the whole so.
struct ResidualMass {
  std::uint64_t high;  // units of 2^32
  std::uint64_t low;   // up to 2^32, inclusive (below it where x is a float)
};

DRAFTPROOF_HD inline ResidualMass residual_mass_halves(double x) {
  const double scaled = x * 0x1p30;
  const double high = static_cast<double>(static_cast<std::int64_t>(scaled));  // floor, x is not negative
  const double low = (scaled - high) * 0x1p32;                                 // exact
  return {static_cast<std::uint64_t>(high), round_to_integer(low)};
}

DRAFTPROOF_HD inline std::uint64_t residual_mass(double x) {
  const ResidualMass halves = residual_mass_halves(x);
  return (halves.high << 32) + halves.low;
}

// (p - q)_+, the residual of speculative sampling (Leviathan et al. 2211.17192, section 2.3). One rule for floats and
// for the exact rationals of a proof.
template <class Number>
DRAFTPROOF_HD inline Number positive_part_of_difference(const Number& p, const Number& q) {
  return p > q ? Number(p - q) : Number(0);
}

}  // namespace draftproof
