#include "reference/numerics/natural_exp.hpp"

#include "tests/support/test.hpp"

namespace {

constexpr double kInfiniteDouble = std::numeric_limits<double>::infinity();
const double kLargest = std::log(std::numeric_limits<double>::max());  // 709.782712893384

double exp_error(double x) {
  return ulp_error(natural_exp(x), std::exp(static_cast<long double>(x)));
}

}  // namespace

TEST_CASE("exp is within its claimed error over the normal range") {
  std::mt19937_64 random(13);
  double worst = 0.0;
  for (int i = 0; i < 100'000; ++i) {
    worst = std::max(worst, exp_error(std::uniform_real_distribution<double>(-708.3, kLargest)(random)));
    worst = std::max(worst, exp_error(std::uniform_real_distribution<double>(-1.0, 1.0)(random)));
  }
  for (int k = -1020; k <= 1020; ++k) {  // where the reduced argument is largest, and where it vanishes
    for (const double x : {(k + 0.5) * std::log(2.0), k * std::log(2.0)}) {
      for (const double direction : {-kInfiniteDouble, kInfiniteDouble})
        worst = std::max(worst, exp_error(std::nextafter(x, direction)));
    }
  }
  CAPTURE(worst);
  CHECK(worst <= 2.0);
  CHECK(worst > 0.5);
}

TEST_CASE("exp overflows and underflows where the library does") {
  CHECK(natural_exp(kLargest) < kInfiniteDouble);
  CHECK(exp_error(kLargest) <= 2.0);
  CHECK(natural_exp(std::nextafter(kLargest, kInfiniteDouble)) == kInfiniteDouble);
  for (const double x : {709.8, 710.0, 710.1, 1e4, 1e300, kInfiniteDouble}) CHECK(natural_exp(x) == kInfiniteDouble);
  for (const double x : {-745.2, -746.0, -746.1, -1e4, -1e300, -kInfiniteDouble}) CHECK(natural_exp(x) == 0.0);
  CHECK(natural_exp(0.0) == 1.0);
  CHECK(natural_exp(-0.0) == 1.0);
  CHECK(natural_exp(1e-300) == 1.0);
}

TEST_CASE("exp reaches down through the subnormal numbers") {
  double worst = 0.0;
  for (int i = 0; i < 40'000; ++i) worst = std::max(worst, exp_error(-708.0 - 37.1 * i / 40'000));
  CAPTURE(worst);
  CHECK(worst <= 2.5);  // 2 ulp where the result is barely normal, and half of the least subnormal
  CHECK(natural_exp(-745.1) == std::numeric_limits<double>::denorm_min());
  CHECK(natural_exp(-708.2) > std::numeric_limits<double>::min());
}
