#include "exactness/rational.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/support/test.hpp"

namespace {

using boost::multiprecision::cpp_rational;

// Numbers of 1 to 64 bits with either sign, ends of the range among them.
std::int64_t some_number(std::mt19937_64& random) {
  if (random() % 16 == 0) return std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(random() % 2);
  if (random() % 16 == 0) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(random()) >> (random() % 63);
}

}  // namespace

TEST_CASE("Fractions of 64 bits and of more are those of Boost.Multiprecision") {
  std::mt19937_64 random(1);
  std::size_t wide = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t n[4] = {some_number(random), some_number(random), some_number(random), some_number(random)};
    if (n[1] == 0 || n[3] == 0) continue;
    const Rational a(n[0], n[1]), b(n[2], n[3]);
    const cpp_rational x = cpp_rational(n[0]) / n[1], y = cpp_rational(n[2]) / n[3];
    REQUIRE(a.str() == x.str());
    REQUIRE(Rational(a.str()) == a);
    REQUIRE((a + b).str() == cpp_rational(x + y).str());
    REQUIRE((a - b).str() == cpp_rational(x - y).str());
    REQUIRE((a * b).str() == cpp_rational(x * y).str());
    if (y != 0) REQUIRE((a / b).str() == cpp_rational(x / y).str());
    REQUIRE((-a).str() == cpp_rational(-x).str());
    REQUIRE(abs(a).str() == cpp_rational(abs(x)).str());
    REQUIRE((a < b) == (x < y));
    REQUIRE((a == b) == (x == y));
    // Back to where it began, by way of more bits.
    REQUIRE(a * b - a * (b - 1) == a);
    REQUIRE(static_cast<double>(a) == static_cast<double>(x));
    wide += (a + b).str().size() > 40;
  }
  CHECK(wide > 1000);
}

TEST_CASE("A fraction of a double is exact, and none has the denominator 0") {
  CHECK(Rational(0.1).str() == "3602879701896397/36028797018963968");
  CHECK(static_cast<double>(Rational(0x1p-1074)) == 0x1p-1074);
  CHECK(Rational(std::numeric_limits<std::uint64_t>::max()).str() == "18446744073709551615");
  CHECK_THROWS_AS(Rational(1) / Rational(0), std::overflow_error);
  CHECK_THROWS_AS(Rational(1, 0), std::overflow_error);
  CHECK_THROWS_AS(Rational(std::nan("")), std::domain_error);
  CHECK_THROWS_AS(Rational("3/x"), std::runtime_error);
}
