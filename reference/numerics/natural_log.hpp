// Natural logarithm of a positive double from + - * / fma alone: the same bits on every target.
//   x = 2^k m, m in [sqrt(1/2), sqrt(2));  f = m - 1,  s = f / (2 + f),  log m = 2 s + s z P(z),  z = s^2.
// P is a minimax fit of relative error 2^-59; the whole is within 2 ulp (tested against a 113-bit logarithm). Near 1
// the relative accuracy holds too, because f = m - 1 is exact: log of 1 - 2^-33 is as good as any other.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.hpp"

namespace draftproof {

namespace log_constants {
inline constexpr double kLn2High = 0x1.62e42fefa3800p-1;
inline constexpr double kLn2Low = 0x1.ef35793c76730p-45;
inline constexpr double kP0 = 0x1.5555555555593p-1;
inline constexpr double kP1 = 0x1.999999997fb31p-2;
inline constexpr double kP2 = 0x1.2492494217a8bp-2;
inline constexpr double kP3 = 0x1.c71c51e7f3125p-3;
inline constexpr double kP4 = 0x1.7466462d33713p-3;
inline constexpr double kP5 = 0x1.39a0f4f5f8283p-3;
inline constexpr double kP6 = 0x1.2f0d8ef234fd9p-3;
inline constexpr std::uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcdULL;  // sqrt(1/2)
}  // namespace log_constants

// x must be positive and finite (subnormals included).
DRAFTPROOF_HD inline double natural_log(double x) {
  using namespace log_constants;
  std::int32_t k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  // Subtracting the bits of sqrt(1/2) makes the exponent field count from there, so m falls in [sqrt(1/2), sqrt(2)).
  const std::uint64_t offset = bit_cast<std::uint64_t>(x) - kSqrtHalfBits;
  const std::int32_t exponent = static_cast<std::int32_t>(static_cast<std::int64_t>(offset) >> 52);
  const double m = bit_cast<double>((offset & 0x000fffffffffffffULL) + kSqrtHalfBits);
  k += exponent;
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = kP6;
  p = std::fma(p, z, kP5);
  p = std::fma(p, z, kP4);
  p = std::fma(p, z, kP3);
  p = std::fma(p, z, kP2);
  p = std::fma(p, z, kP1);
  p = std::fma(p, z, kP0);
  // log m = f - s (f - z P): the large term f is exact, so that the rounding of s hardly matters.
  const double correction = s * std::fma(-z, p, f);
  const double kd = static_cast<double>(k);
  return std::fma(kd, kLn2High, f - (correction - kd * kLn2Low));
}

}  // namespace draftproof
