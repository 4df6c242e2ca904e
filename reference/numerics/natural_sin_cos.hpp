// Sine and cosine of a double from + - * fma alone: the same bits on every target. For the angles of rotary embeddings.
//   x = n pi/2 + r, |r| <= pi/4, by a three-term (Cody-Waite) reduction whose first two products are exact up to
//   |n| = 2^20;  then Taylor series up to r^17 and r^18, whose first terms left out are below 2^-63 of the result.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.hpp"

namespace draftproof {

struct SinCos {
  double sin;
  double cos;
};

inline constexpr double kSinCosLimit = 0x1.9p+20;  // largest |x|

// Each within 2^-52 of the true value (tested). |x| must be at most kSinCosLimit.
DRAFTPROOF_HD inline SinCos natural_sin_cos(double x) {
  constexpr double kRoundMagic = 0x1.8p+52;
  const double n = std::fma(x, 0x1.45f306dc9c883p-1, kRoundMagic) - kRoundMagic;
  // pi/2 in parts of 33, 33 and 53 bits.
  double r = std::fma(-n, 0x1.921fb54400000p+0, x);
  r = std::fma(-n, 0x1.0b4611a600000p-34, r);
  r = std::fma(-n, 0x1.3198a2e037073p-69, r);
  const double z = r * r;
  double s = 1.0 / 355687428096000.0;  // 17!
  s = std::fma(s, z, -1.0 / 1307674368000.0);
  s = std::fma(s, z, 1.0 / 6227020800.0);
  s = std::fma(s, z, -1.0 / 39916800.0);
  s = std::fma(s, z, 1.0 / 362880.0);
  s = std::fma(s, z, -1.0 / 5040.0);
  s = std::fma(s, z, 1.0 / 120.0);
  s = std::fma(s, z, -1.0 / 6.0);
  s = std::fma(s * z, r, r);
  double c = -1.0 / 6402373705728000.0;  // 18!
  c = std::fma(c, z, 1.0 / 20922789888000.0);
  c = std::fma(c, z, -1.0 / 87178291200.0);
  c = std::fma(c, z, 1.0 / 479001600.0);
  c = std::fma(c, z, -1.0 / 3628800.0);
  c = std::fma(c, z, 1.0 / 40320.0);
  c = std::fma(c, z, -1.0 / 720.0);
  c = std::fma(c, z, 1.0 / 24.0);
  c = std::fma(c, z, -0.5);
  c = std::fma(c, z, 1.0);
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

}  // namespace draftproof
