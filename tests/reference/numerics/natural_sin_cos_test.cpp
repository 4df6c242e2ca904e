#include "reference/numerics/natural_sin_cos.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "tests/support/test.hpp"

namespace {

using Wide = boost::multiprecision::cpp_bin_float_50;

// The larger of the errors of sine and cosine, against 50 digits.
double error_at(double x) {
  const SinCos got = natural_sin_cos(x);
  const double of_sin = static_cast<double>(abs(Wide(got.sin) - sin(Wide(x))));
  const double of_cos = static_cast<double>(abs(Wide(got.cos) - cos(Wide(x))));
  return std::max(of_sin, of_cos);
}

}  // namespace

TEST_CASE("Sine and cosine are within 2^-52 of the true value over their range") {
  std::mt19937_64 random(5);
  double worst = 0.0;
  for (const double range : {1.0, 100.0, 8192.0, kSinCosLimit}) {
    for (int i = 0; i < 4000; ++i) {
      const double x = (static_cast<double>(random() >> 11) * 0x1p-52 - 1.0) * range;
      worst = std::max(worst, error_at(x));
    }
  }
  CAPTURE(worst);
  CHECK(worst <= 0x1p-52);
  CHECK(worst > 0x1p-55);
}

TEST_CASE("Sine and cosine are right next to multiples of a quarter turn and at the ends of their range") {
  double worst = 0.0;
  for (std::int64_t quarter = -1040000; quarter <= 1040000; quarter += 4999) {
    const double x = static_cast<double>(quarter) * 1.5707963267948966;
    for (const double at : {x, std::nextafter(x, 1e9), std::nextafter(x, -1e9)}) worst = std::max(worst, error_at(at));
  }
  for (const double x : {kSinCosLimit, -kSinCosLimit, 0.0, 0x1p-1074, 0.7853981633974483, -0.7853981633974483})
    worst = std::max(worst, error_at(x));
  CHECK(worst <= 0x1p-52);
  CHECK(natural_sin_cos(0.0).sin == 0.0);
  CHECK(natural_sin_cos(0.0).cos == 1.0);
}
