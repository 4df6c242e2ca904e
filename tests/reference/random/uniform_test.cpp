#include "reference/random/uniform.hpp"

#include <boost/math/special_functions/expm1.hpp>

#include "reference/numerics/boost_math.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::uint32_t kLastWord = 0xffffffffu;

// How many of the 2^32 words give noise above `threshold`. Noise falls as the word rises (tested below), so the first
// word that does not is found by bisection.
std::uint64_t words_above(double threshold) {
  std::uint64_t low = 0;
  std::uint64_t high = std::uint64_t{1} << 32;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (gumbel_noise(static_cast<std::uint32_t>(middle)) > threshold) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

TEST_CASE("Uniform numbers of 53 bits run from 0 to one step below 1") {
  CHECK(uniform_53(0) == 0.0);
  CHECK(uniform_53((1u << 11) - 1) == 0.0);
  CHECK(uniform_53(1u << 11) == 0x1p-53);
  CHECK(uniform_53(~std::uint64_t{0}) == 1.0 - 0x1p-53);
  CHECK(uniform_53(std::uint64_t{1} << 63) == 0.5);
}

TEST_CASE("The high product of 64 bits is a fair choice below n to within one") {
  for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{128256}, ~std::uint64_t{0}}) {
    CHECK(multiply_high(0, n) == 0);
    CHECK(multiply_high(~std::uint64_t{0}, n) == n - 1);
  }
  // With n = 3 the values change exactly at the thirds of 2^64: 2^64 / 3 = 6148914691236517205.33.
  CHECK(multiply_high(6148914691236517205u, 3) == 0);
  CHECK(multiply_high(6148914691236517206u, 3) == 1);
  CHECK(multiply_high(12297829382473034410u, 3) == 1);
  CHECK(multiply_high(12297829382473034411u, 3) == 2);
}

TEST_CASE("The largest Gumbel noise is 33 ln 2 and the smallest is minus the logarithm of that") {
  const double largest = 33.0 * std::log(2.0);
  // The exponential of word 0 is -log(1 - 2^-33) = 2^-33 + 2^-67.
  CHECK(exponential_noise(0) == 0x1.000000004p-33);
  CHECK(gumbel_noise(0) == Approx(largest).epsilon(1e-9));
  CHECK(gumbel_noise(0) < largest);
  CHECK(exponential_noise(kLastWord) == Approx(largest).epsilon(1e-15));
  CHECK(gumbel_noise(kLastWord) == Approx(-std::log(largest)).epsilon(1e-15));
  CHECK(gumbel_noise(0) - gumbel_noise(kLastWord) < 26.01);
}

TEST_CASE("Gumbel noise falls as its word rises and is finite for every word") {
  int rises = 0;
  const auto check_run = [&](std::uint32_t first, std::uint32_t words) {
    for (std::uint32_t i = 0; i + 1 < words; ++i) {
      const double here = gumbel_noise(first + i);
      const double next = gumbel_noise(first + i + 1);
      rises += !(next <= here) || !std::isfinite(here);
    }
  };
  check_run(0, 5'000);
  check_run(kLastWord - 5'000, 5'001);
  std::mt19937 random(41);
  for (int run = 0; run < 100; ++run) check_run(static_cast<std::uint32_t>(random() % 0xfffff000u), 200);
  check_run(1257966796u - 100, 200);  // where the logarithm changes its exponent
  CHECK(rises == 0);
}

TEST_CASE("The share of words with noise above a threshold is the Gumbel tail to within one word") {
  // P(G > t) = 1 - exp(-exp(-t)); nothing is sampled, the words are counted.
  for (double t = -3.1; t < 22.9; t += 0.1) {
    const double exact = -boost::math::expm1(-std::exp(-t)) * 0x1p32;
    INFO("threshold " << t);
    CHECK(std::fabs(static_cast<double>(words_above(t)) - exact) <= 1.0);
  }
  CHECK(words_above(22.88) == 0);
  CHECK(words_above(-3.14) == std::uint64_t{1} << 32);
}

TEST_CASE("Noise has the accuracy of its logarithms against a chain in 64-bit precision") {
  std::mt19937 random(43);
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto r = static_cast<std::uint32_t>(random() >> (i % 32));
    const long double v = (static_cast<long double>(r) + 0.5L) * 0x1p-32L;
    const long double exponential = -std::log1p(-v);
    wrong += !(std::fabs(exponential_noise(r) - exponential) <= 4e-16L * exponential);
    // Noise near zero is the logarithm of a rounded number near one: its accuracy is absolute there.
    wrong +=
        !(std::fabs(gumbel_noise(r) + std::log(exponential)) <= 4e-16L * (1.0L + std::fabs(std::log(exponential))));
  }
  CHECK(wrong == 0);
}
