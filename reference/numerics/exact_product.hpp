// Products of two doubles compared without rounding: what is compared with a recorded random number decides what an
// engine did, and one rounding could turn it.
#pragma once

#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>
#include <utility>

#include "reference/numerics/unsigned_128.hpp"

namespace draftproof {

// x = mantissa 2^exponent, for finite x >= 0.
struct DoubleParts {
  std::uint64_t mantissa;  // below 2^53
  int exponent;

  static DoubleParts of(double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    return {static_cast<std::uint64_t>(std::ldexp(fraction, 53)), exponent - 53};
  }
};

// a b compared with c d, for finite numbers >= 0.
inline std::strong_ordering compare_products(double a, double b, double c, double d) {
  struct Product {
    Unsigned128 mantissa;
    int exponent;
    int bits() const {
      const auto high = static_cast<std::uint64_t>(mantissa >> 64);
      return 128 - (high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<std::uint64_t>(mantissa)));
    }
  };
  const auto product = [](double x, double y) {
    const DoubleParts of_x = DoubleParts::of(x);
    const DoubleParts of_y = DoubleParts::of(y);
    return Product{static_cast<Unsigned128>(of_x.mantissa) * of_y.mantissa, of_x.exponent + of_y.exponent};
  };
  Product left = product(a, b);
  Product right = product(c, d);
  if (left.mantissa == 0 || right.mantissa == 0) return (left.mantissa != 0) <=> (right.mantissa != 0);
  if (const auto order = left.bits() + left.exponent <=> right.bits() + right.exponent; std::is_neq(order))
    return order;
  // The highest bits are level: the one with fewer bits fits when it is shifted to as many, 106 at most.
  if (left.exponent > right.exponent) left.mantissa <<= left.exponent - right.exponent;
  if (right.exponent > left.exponent) right.mantissa <<= right.exponent - left.exponent;
  return left.mantissa == right.mantissa  ? std::strong_ordering::equal
         : left.mantissa < right.mantissa ? std::strong_ordering::less
                                          : std::strong_ordering::greater;
}

// floor(u n) for u in [0, 1].
inline std::uint64_t floor_of_product(double u, std::uint64_t n) {
  const DoubleParts parts = DoubleParts::of(u);
  const Unsigned128 product = static_cast<Unsigned128>(parts.mantissa) * n;  // below 2^117
  return parts.exponent <= -128 ? 0 : static_cast<std::uint64_t>(product >> -parts.exponent);
}

}  // namespace draftproof
