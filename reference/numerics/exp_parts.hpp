// exp(x) = f * 2^n from fused multiply-adds alone, so that the same bits come out of every compiler and every device.
//
// Because the power of two is kept apart, a softmax needs no row maximum before it starts: the largest n of a tile
// plays that part, and integers do not care in which order they are compared.
//   n = rint(x log2 e),  r = x - n ln 2 by a two-term (Cody-Waite) reduction,  f = 1 + r + r^2 P(r), degree 6.
// P is a minimax fit of relative error 3.2e-9 on |r| <= 0.349; with rounding f is within 1.3 ulp (tested).
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.hpp"

namespace draftproof {

struct ExpParts {
  float f;         // about [0.707, 1.415], or 0 for a masked token
  std::int32_t n;  // binary exponent
};

namespace exp_constants {
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2High = 0x1.62e430p-1f;
inline constexpr float kLn2Low = -0x1.05c610p-29f;
inline constexpr float kC2 = 0x1.fffffcp-2f;
inline constexpr float kC3 = 0x1.55548cp-3f;
inline constexpr float kC4 = 0x1.555908p-5f;
inline constexpr float kC5 = 0x1.123d64p-7f;
inline constexpr float kC6 = 0x1.6a1e66p-10f;
// Adding 1.5 * 2^23 rounds a float of magnitude below 2^22 to the nearest even integer and leaves that integer in the
// low bits; it is one addition everywhere, where rint would be a library call on some targets.
inline constexpr float kRoundMagic = 0x1.8p+23f;
// Up to here the float reduction is accurate; beyond it the double reduction below takes over.
inline constexpr float kFastLimit = 65536.0f;
}  // namespace exp_constants

// A token with this exponent has no mass. It is far below any exponent that exp_parts returns otherwise.
inline constexpr std::int32_t kMaskedExponent = -(1 << 30);

// Logits (after the division by the temperature) must not exceed this; callers report an error. Finite values below its
// negative have a mass that is exactly zero beside any token that is not, and count as masked.
inline constexpr float kLogitLimit = 0x1p29f;

DRAFTPROOF_HD inline float exp_polynomial(float r) {
  using namespace exp_constants;
  float p = kC6;
  p = std::fma(p, r, kC5);
  p = std::fma(p, r, kC4);
  p = std::fma(p, r, kC3);
  p = std::fma(p, r, kC2);
  p = std::fma(p, r, 1.0f);
  return std::fma(p, r, 1.0f);
}

// exp_parts of |x| up to kFastLimit.
DRAFTPROOF_HD inline ExpParts exp_parts_in_float(float x) {
  using namespace exp_constants;
  const float t = std::fma(x, kLog2E, kRoundMagic);
  const float n = t - kRoundMagic;
  float r = std::fma(-n, kLn2High, x);
  r = std::fma(-n, kLn2Low, r);
  return {exp_polynomial(r), bit_cast<std::int32_t>(t) - bit_cast<std::int32_t>(kRoundMagic)};
}

// The decomposition of exp(x). x must not be NaN and at most kLogitLimit.
DRAFTPROOF_HD inline ExpParts exp_parts(float x) {
  using namespace exp_constants;
  if (x >= -kFastLimit && x <= kFastLimit) return exp_parts_in_float(x);
  if (!(x >= -kLogitLimit)) return {0.0f, kMaskedExponent};
  constexpr double kLog2EDouble = 0x1.71547652b82fep+0;
  constexpr double kLn2HighDouble = 0x1.62e42fefa3800p-1;
  constexpr double kLn2LowDouble = 0x1.ef35793c76730p-45;
  constexpr double kRoundMagicDouble = 0x1.8p+52;
  const double wide = static_cast<double>(x);
  const double n = std::fma(wide, kLog2EDouble, kRoundMagicDouble) - kRoundMagicDouble;
  double r = std::fma(-n, kLn2HighDouble, wide);
  r = std::fma(-n, kLn2LowDouble, r);
  return {exp_polynomial(static_cast<float>(r)), static_cast<std::int32_t>(n)};
}

// 2^k as a double, exact; 0 below the normal range (every use multiplies a mass that is zero long before).
DRAFTPROOF_HD inline double exact_power_of_two(std::int32_t k) {
  if (k < -1022) return 0.0;
  return bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

// f * 2^k rounded once to float, subnormals kept: std::ldexp without the library.
DRAFTPROOF_HD inline float scale_by_power_of_two(float f, std::int32_t k) {
  return static_cast<float>(static_cast<double>(f) * exact_power_of_two(k));
}

}  // namespace draftproof
