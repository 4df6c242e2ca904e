#include "exactness/rational.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <ostream>
#include <stdexcept>

namespace draftproof {
namespace {

using Integer = boost::multiprecision::cpp_int;
using Fraction = boost::multiprecision::cpp_rational;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Euclid's algorithm, as soon as possible in 64 bits.
Signed128 common_divisor(Signed128 a, Signed128 b) {
  if (a < 0) a = -a;
  while (b != 0 && (a > kMost || b > kMost)) {
    const Signed128 rest = a % b;
    a = b;
    b = rest;
  }
  if (b == 0) return a;
  return std::gcd(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
}

}  // namespace

struct Rational::Wide {
  Fraction value;
};

void Rational::FreeWide::operator()(Wide* wide) const {
  delete wide;
}

Rational::Rational(std::int64_t n, Whole) : numerator_(n) {
  if (n < -kMost) *this = Rational(Wide{Fraction(n)});
}
Rational::Rational(std::uint64_t n, Whole) : numerator_(static_cast<std::int64_t>(n)) {
  if (n > static_cast<std::uint64_t>(kMost)) *this = Rational(Wide{Fraction(n)});
}
Rational::Rational(double exactly) {
  if (!std::isfinite(exactly)) throw std::domain_error("a fraction of an infinity or NaN");
  *this = Rational(Wide{Fraction(exactly)});
}
Rational::Rational(const std::string& text) {
  *this = Rational(Wide{Fraction(text)});
}
Rational::Rational(const Rational& other)
    : numerator_(other.numerator_),
      denominator_(other.denominator_),
      wide_(other.wide_ ? new Wide(*other.wide_) : nullptr) {}
Rational& Rational::operator=(const Rational& other) {
  return *this = Rational(other);
}

// One form for each number, so that equality needs no arithmetic.
Rational::Rational(Wide fraction) {
  const Integer n = numerator(fraction.value);
  const Integer d = denominator(fraction.value);
  if (abs(n) <= kMost && d <= kMost) {
    numerator_ = static_cast<std::int64_t>(n);
    denominator_ = static_cast<std::int64_t>(d);
  } else {
    wide_.reset(new Wide(std::move(fraction)));
  }
}

// |numerator| < 2^127, denominator in [1, 2^127).
Rational Rational::of(Signed128 numerator, Signed128 denominator) {
  const Signed128 divisor = common_divisor(numerator, denominator);
  numerator /= divisor;
  denominator /= divisor;
  Rational out;
  if (numerator > kMost || numerator < -kMost || denominator > kMost)
    return Rational(Wide{Fraction(Integer(numerator), Integer(denominator))});
  out.numerator_ = static_cast<std::int64_t>(numerator);
  out.denominator_ = static_cast<std::int64_t>(denominator);
  return out;
}

Rational::Wide Rational::wide() const {
  return wide_ ? *wide_ : Wide{Fraction(Integer(numerator_), Integer(denominator_))};
}

Rational Rational::operator-() const {
  return Rational() - *this;
}

Rational operator+(const Rational& a, const Rational& b) {
  if (a.wide_ || b.wide_) return Rational(Rational::Wide{a.wide().value + b.wide().value});
  const Signed128 denominator = a.denominator_;
  if (a.denominator_ == b.denominator_) return Rational::of(Signed128{a.numerator_} + b.numerator_, denominator);
  return Rational::of(a.numerator_ * Signed128{b.denominator_} + b.numerator_ * denominator,
                      denominator * b.denominator_);
}

Rational operator-(const Rational& a, const Rational& b) {
  if (a.wide_ || b.wide_) return Rational(Rational::Wide{a.wide().value - b.wide().value});
  const Signed128 denominator = a.denominator_;
  if (a.denominator_ == b.denominator_) return Rational::of(Signed128{a.numerator_} - b.numerator_, denominator);
  return Rational::of(a.numerator_ * Signed128{b.denominator_} - b.numerator_ * denominator,
                      denominator * b.denominator_);
}

Rational operator*(const Rational& a, const Rational& b) {
  if (a.wide_ || b.wide_) return Rational(Rational::Wide{a.wide().value * b.wide().value});
  return Rational::of(Signed128{a.numerator_} * b.numerator_, Signed128{a.denominator_} * b.denominator_);
}

Rational operator/(const Rational& a, const Rational& b) {
  if (b == Rational()) throw std::overflow_error("a fraction is divided by 0");
  if (a.wide_ || b.wide_) return Rational(Rational::Wide{a.wide().value / b.wide().value});
  const Signed128 sign = b.numerator_ < 0 ? -1 : 1;
  return Rational::of(sign * a.numerator_ * b.denominator_, sign * b.numerator_ * a.denominator_);
}

bool operator==(const Rational& a, const Rational& b) {
  if (a.wide_ && b.wide_) return a.wide_->value == b.wide_->value;
  return !a.wide_ && !b.wide_ && a.numerator_ == b.numerator_ && a.denominator_ == b.denominator_;
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  if (a.wide_ || b.wide_) return a.wide().value.compare(b.wide().value) <=> 0;
  const Signed128 left = Signed128{a.numerator_} * b.denominator_;
  const Signed128 right = Signed128{b.numerator_} * a.denominator_;
  return left < right   ? std::strong_ordering::less
         : left > right ? std::strong_ordering::greater
                        : std::strong_ordering::equal;
}

Rational abs(const Rational& x) {
  return x < Rational() ? -x : x;
}

Rational::operator double() const {
  constexpr std::int64_t exact = std::int64_t{1} << std::numeric_limits<double>::digits;
  if (!wide_ && std::abs(numerator_) <= exact && denominator_ <= exact)
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  return static_cast<double>(wide().value);
}

std::string Rational::str() const {
  return wide().value.str();
}

std::ostream& operator<<(std::ostream& out, const Rational& x) {
  return out << x.str();
}

}  // namespace draftproof
