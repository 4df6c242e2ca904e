// exp of a double from + - * fma alone: the same bits on every target. For scores and reports; rows use exp_parts.
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/numerics/exp_parts.hpp"

namespace draftproof {

// Within 2 ulp (tested) for results in the normal range, within half the least subnormal more below it; +infinity above
// the range. x must not be NaN.
DRAFTPROOF_HD inline double natural_exp(double x) {
  if (x > 710.0) return static_cast<double>(INFINITY);
  if (x < -746.0) return 0.0;
  constexpr double kRoundMagic = 0x1.8p+52;
  const double n = std::fma(x, 0x1.71547652b82fep+0, kRoundMagic) - kRoundMagic;
  double r = std::fma(-n, 0x1.62e42fefa3800p-1, x);
  r = std::fma(-n, 0x1.ef35793c76730p-45, r);
  double p = 0x1.1e3d2ae1b9f58p-29;
  p = std::fma(p, r, 0x1.af6be7db3dc11p-26);
  p = std::fma(p, r, 0x1.27e5b447b7c52p-22);
  p = std::fma(p, r, 0x1.71ddf020d45a0p-19);
  p = std::fma(p, r, 0x1.a01a01368ece6p-16);
  p = std::fma(p, r, 0x1.a01a01b37e34fp-13);
  p = std::fma(p, r, 0x1.6c16c16c3048ep-10);
  p = std::fma(p, r, 0x1.111111110ec5dp-7);
  p = std::fma(p, r, 0x1.5555555555503p-5);
  p = std::fma(p, r, 0x1.555555555555bp-3);
  p = std::fma(p, r, 0.5);
  p = std::fma(p, r, 1.0);
  p = std::fma(p, r, 1.0);
  // In two factors, since 2^n itself may lie outside the range where p 2^n does not.
  const std::int32_t k = static_cast<std::int32_t>(n);
  return p * exact_power_of_two(k / 2) * exact_power_of_two(k - k / 2);
}

}  // namespace draftproof
