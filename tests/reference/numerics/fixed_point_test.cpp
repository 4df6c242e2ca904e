#include "reference/numerics/fixed_point.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>

#include "tests/support/test.hpp"

using boost::multiprecision::cpp_int;

namespace {

// The integer nearest to x 2^k, ties to even, from the fields of x alone. x is not negative.
cpp_int nearest_even(float x, int k) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);
  const cpp_int significand = static_cast<std::int64_t>(std::ldexp(fraction, 24));
  const int shift = exponent - 24 + k;
  if (shift >= 0) return significand << shift;
  const cpp_int below = significand >> -shift;
  const cpp_int twice_the_rest = (significand - (below << -shift)) * 2;
  const cpp_int one = cpp_int(1) << -shift;
  const bool up = twice_the_rest > one || (twice_the_rest == one && (below & 1) != 0);
  return below + (up ? 1 : 0);
}

// Significands that round in every way: few bits, many bits, ties at each place.
std::vector<float> hard_significands() {
  std::vector<float> values;
  for (int place = 1; place <= 23; ++place) {
    const float bit = std::ldexp(1.0f, -place);
    for (const float f : {1.0f + bit, 2.0f - bit, 1.0f + 3 * bit, 1.0f + bit + 0x1p-23f, 1.0f + bit - 0x1p-23f})
      if (f >= 1.0f && f < 2.0f) values.push_back(f);
  }
  std::mt19937 random(23);
  for (int i = 0; i < 200; ++i) values.push_back(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f);
  values.push_back(1.0f);
  return values;
}

}  // namespace

TEST_CASE("Scaling by a power of two equals ldexp bit for bit down through the subnormal numbers to zero") {
  std::vector<float> significands = hard_significands();
  for (const float f : {0.0f, 0.5f, 0.70710678f, 0x1p-149f, 0x1.fffffep127f}) significands.push_back(f);
  int wrong = 0;
  int subnormal = 0;
  int inexact = 0;
  for (const float f : significands) {
    for (const float signed_f : {f, -f}) {
      for (int k = -1100; k <= 1023; ++k) {
        const float scaled = scale_by_power_of_two(signed_f, k);
        wrong += bit_cast<std::uint32_t>(scaled) != bit_cast<std::uint32_t>(std::ldexp(signed_f, k));
        subnormal += std::fpclassify(scaled) == FP_SUBNORMAL;
        inexact += std::fpclassify(scaled) == FP_SUBNORMAL && std::ldexp(scaled, -k) != signed_f;
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(subnormal > 10'000);
  CHECK(inexact > 3'000);
}

TEST_CASE("Powers of two are exact and zero below the normal range") {
  for (int k = -1022; k <= 1023; ++k) CHECK(exact_power_of_two(k) == std::ldexp(1.0, k));
  CHECK(exact_power_of_two(-1023) == 0.0);
  CHECK(exact_power_of_two(std::numeric_limits<std::int32_t>::min()) == 0.0);
}

TEST_CASE("Masses of weights are rounded to nearest and ties to even") {
  int wrong = 0;
  int ties = 0;
  for (const float f : hard_significands()) {
    for (int k = kDeepestWeight; k <= 0; ++k) {
      const float weight = std::ldexp(f, k) * 0.75f;  // up to 1.5
      wrong += cpp_int(mass_of_weight(weight)) != nearest_even(weight, kMassBits);
      const double scaled = std::ldexp(static_cast<double>(weight), kMassBits);
      ties += scaled - std::floor(scaled) == 0.5;
    }
  }
  CHECK(wrong == 0);
  CHECK(ties > 100);
  CHECK(mass_of_weight(0x1p-45f) == 0);         // 1/2, to even
  CHECK(mass_of_weight(0x1.8p-44f) == 2);       // 3/2, to even
  CHECK(mass_of_weight(0x1.4p-43f) == 2);       // 5/2, to even
  CHECK(mass_of_weight(0x1.000002p-45f) == 1);  // above a tie
  CHECK(mass_of_weight(1.0f) == std::uint64_t{1} << 44);
  CHECK(mass_of_weight(0.0f) == 0);
}

TEST_CASE("Residual masses are rounded to nearest and ties to even over the whole range of floats") {
  int wrong = 0;
  int rounded_up = 0;
  for (const float f : hard_significands()) {
    for (int k = -149; k <= 0; ++k) {
      const float x = std::ldexp(f, k);
      const cpp_int expected = nearest_even(x, kResidualBits);
      wrong += cpp_int(residual_mass(x)) != expected;
      rounded_up += std::ldexp(static_cast<long double>(x), kResidualBits) < static_cast<long double>(expected);
      const ResidualMass halves = residual_mass_halves(x);
      wrong += halves.low >= (std::uint64_t{1} << 32);
    }
  }
  CHECK(wrong == 0);
  CHECK(rounded_up > 1'000);
  CHECK(residual_mass(0.0f) == 0);
  CHECK(residual_mass(1.0f) == std::uint64_t{1} << 62);
  CHECK(residual_mass(0x1p-63f) == 0);    // 1/2, to even
  CHECK(residual_mass(0x1.8p-62f) == 2);  // 3/2, to even
  CHECK(residual_mass(0x1.4p-61f) == 2);  // 5/2, to even
  CHECK(residual_mass(0x1p-149f) == 0);
  CHECK(residual_mass(0x1.fffffep-31f) == 0xffffff00u);  // the largest with an empty high half
  CHECK(residual_mass(std::nextafter(0x1p-30f, 1.0f)) == (std::uint64_t{1} << 32) + 512);
}

TEST_CASE("Residual masses of doubles are rounded to nearest and ties to even with a carry between the halves") {
  std::mt19937_64 random(37);
  int wrong = 0;
  int ties = 0;
  int carries = 0;
  for (int i = 0; i < 200'000; ++i) {
    // Random significands, some with a run of ones or zeros in the middle, at every scale.
    std::uint64_t significand = random() >> 12;
    if (i % 4 == 1) significand |= (std::uint64_t{1} << (i / 4 % 52)) - 1;
    if (i % 4 == 2) significand &= ~((std::uint64_t{1} << (i / 4 % 52)) - 1);
    const double x = std::ldexp(1.0 + static_cast<double>(significand) * 0x1p-52, -static_cast<int>(random() % 80));
    const long double scaled = std::ldexp(static_cast<long double>(x), kResidualBits);
    // A long double holds the scaled value, and the environment rounds to nearest even.
    wrong += residual_mass(x) != static_cast<std::uint64_t>(std::nearbyint(scaled));
    ties += scaled - std::floor(scaled) == 0.5L;
    carries += residual_mass_halves(x).low == std::uint64_t{1} << 32;
  }
  CHECK(wrong == 0);
  CHECK(ties > 100);
  CHECK(carries > 100);
}

TEST_CASE("A weight is held at its deepest exponent and its mass is zero there") {
  const ExpParts parts{1.25f, -100};
  CHECK(tile_weight(parts, -100) == 1.25f);
  CHECK(tile_weight(parts, -90) == std::ldexp(1.25f, -10));
  CHECK(tile_weight(parts, -100 - kDeepestWeight) == std::ldexp(1.25f, kDeepestWeight));
  CHECK(tile_weight(parts, 500'000'000) == std::ldexp(1.25f, kDeepestWeight));
  CHECK(mass_of_weight(tile_weight(parts, 500'000'000)) == 0);
  CHECK(tile_weight({0.0f, kMaskedExponent}, 774541002) == 0.0f);
}

TEST_CASE("Masses come down to the scale of the row by whole bits and vanish beyond 63") {
  const std::uint64_t mass = 0x8000'0000'0000'0001u;
  CHECK(row_scale(mass, 5, 5) == mass);
  CHECK(row_scale(mass, 6, 5) == 0x4000'0000'0000'0000u);
  CHECK(row_scale(mass, 68, 5) == 1);
  CHECK(row_scale(mass, 69, 5) == 0);
  CHECK(row_scale(mass, 774541002, kMaskedExponent) == 0);
}

TEST_CASE("Totals become floats with one rounding each") {
  std::mt19937_64 random(29);
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t total = (random() | (std::uint64_t{1} << 63)) >> (i % 20);
    // A long double holds all 64 bits, so the conversion below is the only rounding.
    const float expected = static_cast<float>(std::ldexp(static_cast<long double>(total), -kMassBits));
    wrong += float_total(total) != expected;
    wrong += reciprocal_total(total) != static_cast<float>(1.0L / static_cast<long double>(expected));
    wrong += !(ulp_error(log_total(total), std::log(std::ldexp(static_cast<long double>(total), -kMassBits))) <= 40);
  }
  CHECK(wrong == 0);
}

TEST_CASE("Probabilities and their logarithms follow from the exponent and the total") {
  using Wide = boost::multiprecision::cpp_bin_float_50;
  std::mt19937_64 random(31);
  double worst_log_ulp = 0.0;
  double worst_relative = 0.0;
  for (int i = 0; i < 2'000; ++i) {
    const float logit = std::uniform_real_distribution<float>(-300.0f, 300.0f)(random);
    const ExpParts parts = exp_parts(logit);
    const std::int32_t row_exponent = parts.n + static_cast<std::int32_t>(random() % 100);
    const std::uint64_t total = (std::uint64_t{1} << 44) + (random() >> 2);
    const Wide exact = Wide(logit) - row_exponent * log(Wide(2)) - log(Wide(total) / (std::uint64_t{1} << 44));
    const float log_probability = log_probability_of(logit, row_exponent, log_total(total));
    worst_log_ulp = std::max(worst_log_ulp, ulp_error(log_probability, static_cast<long double>(exact)));
    const float probability = probability_of(parts, row_exponent, reciprocal_total(total));
    const Wide exact_probability = exp(exact);
    worst_relative = std::max(worst_relative, std::fabs(static_cast<double>(probability / exact_probability - 1)));
  }
  CAPTURE(worst_log_ulp, worst_relative);
  CHECK(worst_log_ulp <= 0.5001);          // computed in double and rounded once
  CHECK(worst_relative <= 5.0 * 0x1p-24);  // 1.3 ulp of f, then three roundings
  CHECK(worst_relative >= 1.0 * 0x1p-24);
  CHECK(probability_of({0.0f, kMaskedExponent}, 774541002, 1.0f) == 0.0f);
}

TEST_CASE("The positive part of a difference is one rule for floats and integers") {
  CHECK(positive_part_of_difference(0.75f, 0.5f) == 0.25f);
  CHECK(positive_part_of_difference(0.5f, 0.75f) == 0.0f);
  CHECK(positive_part_of_difference(0.5f, 0.5f) == 0.0f);
  CHECK(positive_part_of_difference(0x1p-149f, 0.0f) == 0x1p-149f);  // subnormal numbers are kept
  CHECK(positive_part_of_difference(cpp_int(7), cpp_int(9)) == 0);
  CHECK(positive_part_of_difference(cpp_int(9), cpp_int(7)) == 2);
}
