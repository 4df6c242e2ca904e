// The exact number of every proof: a fraction in lowest terms. Boost.Multiprecision computes it; numerators and
// denominators of at most 63 bits, which most are, are computed here. Its headers are read by rational.cpp alone, since
// every proof is a template over the number.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

namespace draftproof {

__extension__ using Signed128 = __int128;

class Rational {
 public:
  Rational() = default;
  template <std::signed_integral Integer>
  Rational(Integer n) : Rational(static_cast<std::int64_t>(n), Whole{}) {}
  template <std::unsigned_integral Integer>
  Rational(Integer n) : Rational(static_cast<std::uint64_t>(n), Whole{}) {}
  // std::overflow_error where the denominator is 0.
  template <std::integral A, std::integral B>
  Rational(A numerator, B denominator) : Rational(numerator) {
    *this /= Rational(denominator);
  }
  explicit Rational(double exactly);           // std::domain_error of an infinity or NaN
  explicit Rational(const std::string& text);  // as of str(); std::runtime_error of other texts
  Rational(const Rational& other);
  Rational(Rational&& other) noexcept = default;
  Rational& operator=(const Rational& other);
  Rational& operator=(Rational&& other) noexcept = default;
  ~Rational() = default;

  Rational& operator+=(const Rational& other) { return *this = *this + other; }
  Rational& operator-=(const Rational& other) { return *this = *this - other; }
  Rational& operator*=(const Rational& other) { return *this = *this * other; }
  Rational& operator/=(const Rational& other) { return *this = *this / other; }  // std::overflow_error of 0
  Rational operator-() const;
  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b);
  friend bool operator==(const Rational& a, const Rational& b);
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);
  friend Rational abs(const Rational& x);

  explicit operator double() const;  // the nearest
  std::string str() const;           // "3/4", "-2"
  friend std::ostream& operator<<(std::ostream& out, const Rational& x);

 private:
  struct Whole {};
  struct Wide;  // what has more bits
  struct FreeWide {
    void operator()(Wide* wide) const;
  };
  Rational(std::int64_t n, Whole);
  Rational(std::uint64_t n, Whole);
  explicit Rational(Wide value);
  static Rational of(Signed128 numerator, Signed128 denominator);
  Wide wide() const;

  // Both lie in (-2^63, 2^63), the denominator above 0, where there is no `wide_`.
  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
  std::unique_ptr<Wide, FreeWide> wide_;
};

}  // namespace draftproof
