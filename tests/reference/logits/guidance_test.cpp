#include "reference/logits/guidance.hpp"

#include "reference/sampling/logits_distribution.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<float> combined(const std::vector<float>& conditional, const std::vector<float>& unconditional, float scale,
                            std::int64_t row = 0) {
  std::vector<float> out(conditional.size());
  combine_guidance(conditional, unconditional, scale, row, out);
  return out;
}

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
