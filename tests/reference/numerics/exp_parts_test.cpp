#include "reference/numerics/exp_parts.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "tests/support/test.hpp"

namespace {

using Wide = boost::multiprecision::cpp_bin_float_50;

constexpr double kExpPartsUlp = 1.3;
const Wide kLn2 = boost::multiprecision::log(Wide(2));

// exp(x) / 2^n by 50 digits: right for every x.
long double slow_exact_f(float x, std::int32_t n) {
  return static_cast<long double>(Wide(boost::multiprecision::exp(Wide(Wide(x) - n * kLn2))));
}
// The same by the 64-bit exponential of the platform, for dense samples of |x| <= 100 or so.
long double exact_f(float x, std::int32_t n) {
  return std::ldexp(std::exp(static_cast<long double>(x)), -n);
}

float next(float x, int steps) {
  for (; steps > 0; --steps) x = std::nextafter(x, kInfinity);
  for (; steps < 0; ++steps) x = std::nextafter(x, -kInfinity);
  return x;
}

double slow_error(float x) {
  const ExpParts parts = exp_parts(x);
  return ulp_error(parts.f, slow_exact_f(x, parts.n));
}

// Calls visit(x) on floats around each point where n steps up: x log2(e) = k + 1/2 for k in [first, last].
template <class Visit>
void around_steps(std::int64_t first, std::int64_t last, std::int64_t stride, int reach, Visit visit) {
  const double ln2 = std::log(2.0);
  for (std::int64_t k = first; k <= last; k += stride) {
    const float middle = static_cast<float>((static_cast<double>(k) + 0.5) * ln2);
    float x = next(middle, -reach);
    for (int i = -reach; i <= reach; ++i, x = next(x, 1)) visit(x);
  }
}

}  // namespace

TEST_CASE("The mantissa of exp is within its claimed error on a dense sample of logits") {
  double worst = 0.0;
  double worst_of_the_yardstick = 0.0;
  constexpr int kSamples = 400'000;
  for (int i = 0; i <= kSamples; ++i) {
    const float x = static_cast<float>(-100.0 + 200.0 * i / kSamples);
    const ExpParts parts = exp_parts(x);
    worst = std::max(worst, ulp_error(parts.f, exact_f(x, parts.n)));
    if (i % 400 == 0) {
      const long double slow = slow_exact_f(x, parts.n);
      worst_of_the_yardstick = std::max(worst_of_the_yardstick, ulp_error(exact_f(x, parts.n), slow));
    }
  }
  CAPTURE(worst, worst_of_the_yardstick);
  CHECK(worst <= kExpPartsUlp);
  CHECK(worst > 0.5);                     // a correctly rounded function would be no test of the measure
  CHECK(worst_of_the_yardstick <= 20.0);  // of the 64-bit type, 2^-36 of the ulp above
}

TEST_CASE("The mantissa of exp is within its claimed error where the reduced argument is largest") {
  double worst = 0.0;
  around_steps(-144, 143, 1, 40, [&](float x) {
    const ExpParts parts = exp_parts(x);
    worst = std::max(worst, ulp_error(parts.f, exact_f(x, parts.n)));
  });
  CAPTURE(worst);
  CHECK(worst <= kExpPartsUlp);
}

TEST_CASE("The mantissa of exp keeps its error up to the limit of logits on both sides of the border at 65536") {
  std::mt19937 random(7);
  double worst_fast = 0.0;
  double worst_slow = 0.0;
  for (int i = 0; i < 3000; ++i) {
    const double sign = i % 2 == 0 ? 1.0 : -1.0;
    const double magnitude = std::exp2(std::uniform_real_distribution<double>(6.0, 16.0)(random));
    worst_fast = std::max(worst_fast, slow_error(static_cast<float>(sign * magnitude)));
    worst_slow = std::max(worst_slow, slow_error(static_cast<float>(sign * magnitude * 0x1p13)));
  }
  around_steps(-94548, 94547, 997, 2, [&](float x) { worst_fast = std::max(worst_fast, slow_error(x)); });
  for (const float limit : {65536.0f, -65536.0f, kLogitLimit, -kLogitLimit}) {
    for (const float x : {limit, next(limit, 1), next(limit, -1)}) {
      if (std::fabs(x) <= kLogitLimit) worst_slow = std::max(worst_slow, slow_error(x));
    }
  }
  CAPTURE(worst_fast, worst_slow);
  CHECK(worst_fast <= kExpPartsUlp);
  CHECK(worst_slow <= kExpPartsUlp);
}

TEST_CASE("The exponent never falls as the logit rises") {
  int falls = 0;
  int steps = 0;
  std::int32_t last_n = std::numeric_limits<std::int32_t>::min();
  const auto visit = [&](float x) {
    if (!(std::fabs(x) <= kLogitLimit)) return;
    const std::int32_t n = exp_parts(x).n;
    falls += n < last_n;
    steps += n > last_n;
    last_n = n;
  };
  // Every step of the fast range, in ascending order and across both borders, and samples of the slow range.
  around_steps(-774'541'000, -94'560, 2'000'003, 3, visit);
  around_steps(-94'560, 94'560, 1, 3, visit);
  around_steps(94'561, 774'541'000, 2'000'003, 3, visit);
  CHECK(falls == 0);
  CHECK(steps >= 2 * 94'560);

  // Runs of consecutive floats, at the borders and elsewhere.
  std::mt19937 random(11);
  for (int run = 0; run < 600; ++run) {
    float x = run == 0   ? next(65536.0f, -200)
              : run == 1 ? next(-65536.0f, -200)
                         : std::exp2(std::uniform_real_distribution<float>(-3.0f, 28.9f)(random)) *
                               (run % 2 == 0 ? 1.0f : -1.0f);
    last_n = std::numeric_limits<std::int32_t>::min();
    for (int i = 0; i < 400; ++i, x = next(x, 1)) visit(x);
  }
  CHECK(falls == 0);
}

TEST_CASE("The exponent is the nearest integer to x over ln 2 but for near ties") {
  // A near tie leaves a reduced argument of at most 0.349.
  const auto reduced = [](float x) { return std::fabs(static_cast<double>(Wide(Wide(x) - exp_parts(x).n * kLn2))); };
  double worst = 0.0;
  around_steps(-94'548, 94'547, 499, 2, [&](float x) { worst = std::max(worst, reduced(x)); });
  around_steps(-774'540'000, 774'540'000, 3'000'017, 1, [&](float x) { worst = std::max(worst, reduced(x)); });
  CAPTURE(worst);
  CHECK(worst <= 0.349);
  CHECK(worst >= 0.3465);
  CHECK(exp_parts(kLogitLimit).n == 774541002);  // 2^29 log2(e) = 774541002.39
  CHECK(exp_parts(-kLogitLimit).n == -774541002);
}

TEST_CASE("Special logits have the parts that the contract gives them") {
  for (const float zero : {0.0f, -0.0f}) {
    CHECK(exp_parts(zero).f == 1.0f);
    CHECK(exp_parts(zero).n == 0);
  }
  CHECK(exp_parts(std::numeric_limits<float>::denorm_min()).f == 1.0f);
  CHECK(exp_parts(-std::numeric_limits<float>::denorm_min()).n == 0);
  for (const float masked : {-kInfinity, std::numeric_limits<float>::lowest(), -1e30f, next(-kLogitLimit, -1)}) {
    CHECK(exp_parts(masked).f == 0.0f);
    CHECK(exp_parts(masked).n == kMaskedExponent);
  }
  CHECK(exp_parts(-kLogitLimit).f > 0.7f);
  CHECK(exp_parts(-kLogitLimit).n > kMaskedExponent);
  CHECK(exp_parts(1.0f).n == 1);
  CHECK(exp_parts(1.0f).f == 0x1.5bf0a8p+0f);  // e / 2 = 1.3591409 = 0x1.5bf0a8b..., nearest below
}
