#include "reference/logits/guidance.hpp"

#include <boost/multiprecision/cpp_int.hpp>

#include "reference/row_kernels/row_kernels.hpp"
#include "reference/sampling/logits_distribution.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<float> combined(const std::vector<float>& conditional, const std::vector<float>& unconditional, float scale,
                            std::int64_t row = 0, GuidanceForm form = GuidanceForm::logits) {
  std::vector<float> out(conditional.size());
  combine_guidance(conditional, unconditional, scale, row, out, form);
  return out;
}

std::vector<double> softmax_of(const std::vector<float>& logits) {
  std::vector<double> p;
  double total = 0.0;
  for (const float l : logits) total += p.emplace_back(std::exp(static_cast<double>(l)));
  for (double& x : p) x /= total;
  return p;
}

// Row c = (3, 2, 0, 0) / 5 and u = (1, 2, 0, 2) / 5 of bug B104.
const std::vector<float> kConditional{std::log(3.0f), std::log(2.0f), -kInfinity, -kInfinity};
const std::vector<float> kUnconditional{0.0f, std::log(2.0f), -kInfinity, std::log(2.0f)};

}  // namespace

TEST_CASE("guidance extrapolates from the unconditional to the conditional logits") {
  // l_u + s (l_c - l_u), exact in f32: 1 + 3 (2 - 1) = 4, -2 + 3 (0 + 2) = 4, 0.5 + 3 (0.25 - 0.5) = -0.25.
  CHECK(combined({2.0f, 0.0f, 0.25f}, {1.0f, -2.0f, 0.5f}, 3.0f) == std::vector<float>{4.0f, 4.0f, -0.25f});
  CHECK(combined({2.0f, 0.0f}, {1.0f, -2.0f}, 0.0f) == std::vector<float>{1.0f, -2.0f});
  CHECK(combined({2.0f, 0.0f}, {1.0f, -2.0f}, -1.0f) == std::vector<float>{0.0f, -4.0f});
}

TEST_CASE("guidance of scale 1 is the conditional row bit for bit whatever the other row holds") {
  TestRandom random(21);
  std::vector<float> conditional = normal_row(random, 500);
  conditional[7] = -0.0f;
  conditional[9] = 0x1p-149f;
  conditional[11] = -kInfinity;
  conditional[13] = 3e38f;
  std::vector<float> unconditional = normal_row(random, 500, 1e7f);
  unconditional[3] = -kInfinity;
  const std::vector<float> out = combined(conditional, unconditional, 1.0f);
  CHECK(std::memcmp(out.data(), conditional.data(), out.size() * sizeof(float)) == 0);
}

TEST_CASE("guidance may write over either of its inputs") {
  TestRandom random(22);
  const std::vector<float> c = normal_row(random, 50);
  const std::vector<float> u = normal_row(random, 50);
  const std::vector<float> expected = combined(c, u, 2.5f);
  std::vector<float> over_c = c;
  combine_guidance(over_c, u, 2.5f, 0, over_c);
  std::vector<float> over_u = u;
  combine_guidance(c, over_u, 2.5f, 0, over_u);
  CHECK(over_c == expected);
  CHECK(over_u == expected);
}

TEST_CASE("a token that the conditional row masks stays masked") {
  const std::vector<float> out = combined({-kInfinity, -kInfinity, 1.0f}, {-kInfinity, 5.0f, 1.0f}, 4.0f);
  CHECK(out == std::vector<float>{-kInfinity, -kInfinity, 1.0f});
  CHECK(combined({-kInfinity, 1.0f}, {5.0f, 1.0f}, -4.0f)[0] == -kInfinity);
}

TEST_CASE("shifting either row by a constant does not change the guided distribution") {
  // Log-softmax of each branch first is such a shift: the distribution is the same, within rounding of the shifted
  // logits.
  TestRandom random(23);
  const std::vector<float> c = normal_row(random, 200);
  const std::vector<float> u = normal_row(random, 200);
  std::vector<float> c_shifted = c;
  std::vector<float> u_shifted = u;
  for (float& l : c_shifted) l -= 7.3f;
  for (float& l : u_shifted) l += 2.9f;
  const std::vector<float> logits = combined(c, u, 3.0f);
  const std::vector<float> shifted_logits = combined(c_shifted, u_shifted, 3.0f);
  LogitsDistribution plain;
  plain.assign(logits, 0);
  LogitsDistribution shifted;
  shifted.assign(shifted_logits, 0);
  for (Token t = 0; t < 200; ++t) REQUIRE(shifted.probability(t) == Approx(plain.probability(t)).epsilon(1e-4));
}

TEST_CASE("guidance refuses pairs without a meaning and names row and column") {
  const auto message = [](float c, float u, float scale) {
    return error_of(ErrorKind::input, [&] { combined({0.0f, 0.0f, c}, {0.0f, 0.0f, u}, scale, 17); });
  };
  CHECK_THAT(message(1.0f, -kInfinity, 2.0f), Contains("row 17, column 2") && Contains("mask"));
  CHECK_THAT(message(kInfinity, 1.0f, 2.0f), Contains("row 17, column 2") && Contains("inf"));
  CHECK_THAT(message(1.0f, kInfinity, 2.0f), Contains("row 17, column 2") && Contains("inf"));
  CHECK_THAT(message(-kInfinity, kInfinity, 2.0f), Contains("row 17, column 2") && Contains("inf"));
  CHECK_THAT(message(3e38f, -3e38f, 2.0f), Contains("row 17, column 2") && Contains("range"));
  CHECK_THAT(message(-3e38f, 1e38f, 2.0f), Contains("row 17, column 2") && Contains("range"));
  const std::vector<float> three(3, 0.0f);
  std::vector<float> out(3);
  const std::vector<float> two(2, 0.0f);
  CHECK_THAT(error_of(ErrorKind::input, [&] { combine_guidance(three, two, 2.0f, 4, out); }),
             Contains("row 4") && Contains("3") && Contains("2"));
}

TEST_CASE("a NaN in either row comes out as a NaN for the policy of the row to meet") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(combined({nan}, {1.0f}, 2.0f)[0]));
  CHECK(std::isnan(combined({1.0f}, {nan}, 2.0f)[0]));
  CHECK(std::isnan(combined({-kInfinity}, {nan}, 2.0f)[0]));
  CHECK(std::isnan(combined({nan}, {-kInfinity}, 2.0f)[0]));
}

TEST_CASE("guidance of probabilities combines log(p + 1e-10) of both rows, of masked tokens log 1e-10") {
  TestRandom random(24);
  for (const std::size_t size : {2u, 40u, 5000u}) {
    std::vector<float> c = normal_row(random, static_cast<std::int64_t>(size), 4.0f);
    std::vector<float> u = normal_row(random, static_cast<std::int64_t>(size), 4.0f);
    c[1] = -kInfinity;
    if (size > 2) u[1] = u[2] = -kInfinity;
    const std::vector<double> p_c = softmax_of(c), p_u = softmax_of(u);
    for (const float scale : {-1.0f, 0.0f, 0.5f, 2.0f, 7.5f}) {
      const std::vector<float> out = combined(c, u, scale, 0, GuidanceForm::probabilities);
      for (std::size_t i = 0; i < size; ++i) {
        const double l_u = std::log(p_u[i] + 1e-10);
        const double expected = l_u + static_cast<double>(scale) * (std::log(p_c[i] + 1e-10) - l_u);
        CAPTURE(size, scale, i, out[i], expected);
        REQUIRE(std::abs(out[i] - expected) <= 1e-6 * (1.0 + std::abs(scale)) + 1e-6 * std::abs(expected));
      }
    }
    CHECK(combined(c, u, 1.0f, 0, GuidanceForm::probabilities) == c);  // 1 is off
    std::vector<float> over_u = u;
    combine_guidance(c, over_u, 2.0f, 0, over_u, GuidanceForm::probabilities);
    CHECK(over_u == combined(c, u, 2.0f, 0, GuidanceForm::probabilities));
  }
}

TEST_CASE("guidance of probabilities has the same bits on every row kernel, and those that were written down") {
  TestRandom random(25);
  const std::vector<float> c = normal_row(random, 9000, 3.0f);
  const std::vector<float> u = normal_row(random, 9000, 3.0f);
  const std::string active = row_kernels().target;
  std::vector<std::vector<float>> found;
  for (const RowKernels& kernels : available_row_kernels()) {
    select_row_kernels(kernels.target);
    found.push_back(combined(c, u, 1.5f, 0, GuidanceForm::probabilities));
    CHECK(std::memcmp(found.back().data(), found.front().data(), c.size() * sizeof(float)) == 0);
  }
  select_row_kernels(active);
  const std::vector<float> golden = combined(kConditional, kUnconditional, 2.0f, 0, GuidanceForm::probabilities);
  std::vector<std::uint32_t> bits;
  for (const float l : golden) bits.push_back(std::bit_cast<std::uint32_t>(l));
  CHECK(bits == std::vector<std::uint32_t>{0x3f167931, 0xbf6a9207, 0xc1b834f1, 0xc2348aa9});
}

TEST_CASE("a NaN stays one under guidance of probabilities and counts as masked for the others") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> out = combined({nan, 1.0f, 2.0f}, {0.0f, 1.0f, 0.5f}, 2.0f, 0, GuidanceForm::probabilities);
  const std::vector<float> masked =
      combined({-kInfinity, 1.0f, 2.0f}, {0.0f, 1.0f, 0.5f}, 2.0f, 0, GuidanceForm::probabilities);
  CHECK(std::isnan(out[0]));
  CHECK(std::vector<float>(out.begin() + 1, out.end()) == std::vector<float>(masked.begin() + 1, masked.end()));
  const auto message = [](std::vector<float> c, std::vector<float> u, float scale) {
    return error_of(ErrorKind::input, [&] { combined(c, u, scale, 17, GuidanceForm::probabilities); });
  };
  CHECK_THAT(message({0, kInfinity}, {0, 0}, 2), Contains("row 17, column 1") && Contains("+inf"));
  CHECK_THAT(message({0, 0}, {-kInfinity, -kInfinity}, 2), Contains("row 17"));
  CHECK_THAT(message({0, 5}, {0, 0}, 3e38f), Contains("row 17, column 0") && Contains("range"));
}

TEST_CASE("the distance of guidance of probabilities is the fraction of bug B104, and 0 where nothing is guided") {
  using Fraction = boost::multiprecision::cpp_rational;
  const std::vector<Fraction> c{Fraction(3, 5), Fraction(2, 5), 0, 0};
  const std::vector<Fraction> u{Fraction(1, 5), Fraction(2, 5), 0, Fraction(2, 5)};
  const auto guided = [&](const Fraction& e) {  // at scale 2: (c + e)^2 / (u + e)
    std::vector<Fraction> weights;
    Fraction total = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const Fraction over = c[i] + e;
      weights.push_back(over == 0 ? Fraction(0) : Fraction(over * over / (u[i] + e)));
      total += weights.back();
    }
    for (Fraction& w : weights) w /= total;
    return weights;
  };
  const std::vector<Fraction> exact = guided(0), floored = guided(Fraction(1, 10'000'000'000));
  Fraction distance = 0;
  for (std::size_t i = 0; i < c.size(); ++i)
    if (exact[i] > floored[i]) distance += exact[i] - floored[i];
  const double expected = distance.convert_to<double>();
  CHECK(expected == Approx(9.917355e-11));
  CHECK(guidance_distance(kConditional, kUnconditional, 2.0f).value() == Approx(expected).epsilon(1e-4));
  CHECK(guidance_distance(kConditional, kUnconditional, 1.0f) == 0.0);
  // A token that the unconditional row hardly gives has nearly all of the mass in both forms.
  const std::vector<float> even{0.0f, 0.0f, 0.0f}, rare{0.0f, 0.0f, -46.0517f};
  CHECK(guidance_distance(even, rare, 2.0f).value() < 1e-8);
  // c = (1, 1, e') / 2: at scale 2 and u = 1e-20, e' = 1e-11 weighs 1e-2 in the exact form and 1e-10 / 2 with e.
  const std::vector<float> small{0.0f, 0.0f, static_cast<float>(std::log(2e-11))};
  const std::vector<float> tiny{0.0f, 0.0f, static_cast<float>(std::log(2e-20))};
  CHECK(guidance_distance(small, tiny, 2.0f).value() == Approx(0.01 / 1.01).epsilon(1e-4));
  // No exact guidance.
  CHECK_FALSE(guidance_distance(std::vector{0.0f, 0.0f}, std::vector{0.0f, -kInfinity}, 2.0f));
  CHECK_FALSE(guidance_distance(std::vector{-kInfinity}, std::vector{0.0f}, 2.0f));
  CHECK_FALSE(guidance_distance(std::vector{0.0f, kInfinity}, std::vector{0.0f, 0.0f}, 2.0f));
  CHECK_FALSE(guidance_distance(std::vector{0.0f, kNan}, std::vector{0.0f, 0.0f}, 2.0f));
}
