// An unevaluated sum of two doubles, about 104 bits, from + - * / alone: the same bits on every target. For elementary
// functions (elementary.cpp). T. J. Dekker, "A floating-point technique for extending the available precision", Numer.
// Math. 18 (1971).
#pragma once

namespace draftproof {

// high + low, |low| at most half an ulp of high. No value may come near the ends of the range of exponents.
struct DoubleDouble {
  double high = 0;
  double low = 0;
};

// a + b, for |a| >= |b| or a = 0.
constexpr DoubleDouble fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// a + b, exactly.
constexpr DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

// a b, exactly, by halves of 26 bits: below 2^995.
constexpr DoubleDouble two_product(double a, double b) {
  constexpr double kSplitter = 134217729.0;  // 2^27 + 1
  const double a_scaled = kSplitter * a, b_scaled = kSplitter * b;
  const double a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
  const double a_low = a - a_high, b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = two_sum(a.high, b.high);
  const DoubleDouble low = two_sum(a.low, b.low);
  const DoubleDouble sum = fast_two_sum(high.high, high.low + low.high);
  return fast_two_sum(sum.high, sum.low + low.low);
}

constexpr DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = two_product(a.high, b.high);
  return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

constexpr DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double first = a.high / b.high;
  const DoubleDouble product = DoubleDouble{first, 0} * b;
  const DoubleDouble rest = a + DoubleDouble{-product.high, -product.low};
  return fast_two_sum(first, rest.high / b.high);
}

}  // namespace draftproof
