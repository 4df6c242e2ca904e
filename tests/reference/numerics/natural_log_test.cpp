#include "reference/numerics/natural_log.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "tests/support/test.hpp"

namespace {

constexpr double kLogUlp = 2.0;

// The platform's 64-bit logarithm is the yardstick; it is itself held against 50 digits below.
double log_error(double x) {
  return ulp_error(natural_log(x), std::log(static_cast<long double>(x)));
}

}  // namespace

TEST_CASE("The logarithm is within its claimed error over all positive doubles") {
  std::mt19937_64 random(3);
  double worst = 0.0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = bit_cast<double>(random() % 0x7ff0000000000000ULL + 1 - (i == 0 ? 1 : 0));
    if (x > 0.0 && std::isfinite(x)) worst = std::max(worst, log_error(x));
  }
  for (int k = -1074; k <= 1023; ++k) {
    for (const double m : {1.0, 0x1.0000000000001p0, 0x1.6a09e667f3bccp0, 0x1.6a09e667f3bcdp0, 0x1.6a09e667f3bcep0,
                           0x1.fffffffffffffp0}) {
      const double x = std::ldexp(m, k);
      if (std::isfinite(x)) worst = std::max(worst, log_error(x));
    }
  }
  CAPTURE(worst);
  CHECK(worst <= kLogUlp);
  CHECK(worst > 0.5);
}

TEST_CASE("The logarithm keeps its relative error next to 1") {
  double worst = 0.0;
  for (int bits = 1; bits <= 53; ++bits) {
    for (int multiple = 1; multiple < 200; ++multiple) {
      const double distance = std::ldexp(static_cast<double>(multiple), -bits);
      worst = std::max(worst, log_error(1.0 + distance));
      if (distance < 1.0) worst = std::max(worst, log_error(1.0 - distance));
    }
  }
  CAPTURE(worst);
  CHECK(worst <= kLogUlp);
  CHECK(natural_log(1.0 - 0x1p-33) == -0x1.000000004p-33);  // the largest noise hangs on this one
  CHECK(natural_log(1.0) == 0.0);
  CHECK_FALSE(std::signbit(natural_log(1.0)));
}

TEST_CASE("The logarithm is within its claimed error for subnormal numbers") {
  std::mt19937_64 random(5);
  double worst = 0.0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random() >> (12 + i % 52);
    if (bits != 0) worst = std::max(worst, log_error(bit_cast<double>(bits)));
  }
  CAPTURE(worst);
  CHECK(worst <= kLogUlp);
  CHECK(natural_log(std::numeric_limits<double>::denorm_min()) == -0x1.74385446d71c3p+9);  // -1074 ln 2
}

TEST_CASE("The yardstick of the logarithm agrees with 50 digits") {
  using Wide = boost::multiprecision::cpp_bin_float_50;
  std::mt19937_64 random(9);
  double worst = 0.0;
  for (int i = 0; i < 1500; ++i) {
    const double x = i % 3 == 0   ? bit_cast<double>(random() % 0x7ff0000000000000ULL)
                     : i % 3 == 1 ? 1.0 - std::ldexp(static_cast<double>(1 + random() % 1000), -33)
                                  : std::ldexp(static_cast<double>(1 + random() % 1000), -1074);
    const auto exact = static_cast<long double>(Wide(boost::multiprecision::log(Wide(x))));
    worst = std::max(worst, ulp_error(std::log(static_cast<long double>(x)), exact));
  }
  CAPTURE(worst);
  CHECK(worst <= 2.0);  // of the 64-bit type
}
