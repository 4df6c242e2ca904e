#include "reference/numerics/exact_product.hpp"

#include "exactness/rational.hpp"
#include "tests/support/test.hpp"

namespace {

double any_double(TestRandom& random) {
  if (random.chance(0.1)) return 0.0;
  if (random.chance(0.1)) return std::numeric_limits<double>::denorm_min() * static_cast<double>(random.below(5));
  if (random.chance(0.1)) return std::numeric_limits<double>::max();
  const double x = random.uniform() + 0.25;
  return std::ldexp(x, static_cast<int>(random.below(random.chance(0.5) ? 4 : 600)) - 300);
}

}  // namespace

TEST_CASE("products of doubles are compared as fractions are") {
  TestRandom random(41);
  int equal = 0;
  for (int i = 0; i < 20000; ++i) {
    const double a = any_double(random);
    const double b = any_double(random);
    double c = any_double(random);
    double d = any_double(random);
    if (random.chance(0.3)) c = b, d = a;                              // a b = b a
    if (random.chance(0.3)) c = std::nextafter(b, 0.0), d = a;         // nearly
    if (random.chance(0.2)) c = a * 0.5, d = b < 1e300 ? 2.0 * b : b;  // equal, other exponents
    const Rational left = Rational(a) * Rational(b);
    const Rational right = Rational(c) * Rational(d);
    const auto order = compare_products(a, b, c, d);
    CAPTURE(a, b, c, d);
    REQUIRE((order < 0) == (left < right));
    REQUIRE((order > 0) == (left > right));
    equal += order == 0 ? 1 : 0;
  }
  CHECK(equal > 1000);
  // In double the product is 1.
  CHECK((compare_products(1.0 + 0x1p-52, 1.0 - 0x1p-53, 1.0, 1.0) > 0));
  CHECK((1.0 + 0x1p-52) * (1.0 - 0x1p-53) == 1.0);
}

TEST_CASE("the floor of a product of a uniform number and an integer is that of the fraction") {
  TestRandom random(42);
  for (int i = 0; i < 20000; ++i) {
    const double u = random.chance(0.05)   ? 1.0
                     : random.chance(0.05) ? 0.0
                     : random.chance(0.1)  ? std::numeric_limits<double>::denorm_min()
                                           : std::ldexp(random.uniform(), -static_cast<int>(random.below(90)));
    const std::uint64_t n = random.chance(0.1)
                                ? std::numeric_limits<std::uint64_t>::max()
                                : (static_cast<std::uint64_t>(random.word()) << 32 | random.word()) >> random.below(60);
    const Rational product = Rational(u) * Rational(n);
    const Rational floor(floor_of_product(u, n));
    CAPTURE(u, n);
    REQUIRE(floor <= product);
    REQUIRE(product < floor + 1);
  }
}
