// Differences of pairs against published figures and counts by hand.
#include "studies/experiments/paired_difference.hpp"

#include "tests/support/test.hpp"

TEST_CASE("the pairs that a wished difference needs are those of which it is detectable") {
  // Half a standard deviation, two-sided 5 %, power 80 %: 34 pairs in tables of sample sizes for the paired t test.
  CHECK(pairs_needed(1.0, 0.5) == 34);
  CHECK(pairs_needed(2.0, 1.0) == 34);
  CHECK(pairs_needed(1.0, 100.0) == 6);  // fewer have no p below 0.05
  std::vector<double> a, b;
  for (int i = 0; i < 17; ++i) {
    a.push_back(i % 5);
    b.push_back(i % 3);
  }
  const PairedDifference found = paired_difference(a, b);
  CHECK(pairs_needed(found.spread, 1.0001 * *found.detectable) == 17);
  CHECK(pairs_needed(found.spread, 0.999 * *found.detectable) == 18);
}

TEST_CASE("Student's own pairs give Student's own figures") {
  // Hours of sleep gained by ten patients with two drugs (Student 1908); R's t.test(..., paired = TRUE) prints
  // t = -4.0621, p-value = 0.002833, 95 percent confidence interval -2.4598858 -0.7001142, mean difference -1.58.
  const std::vector<double> first{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const std::vector<double> second{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const PairedDifference d = paired_difference(first, second);
  CHECK(d.pairs == 10);
  CHECK(d.difference == Approx(-1.58));
  CHECK(d.low == Approx(-2.4598858).epsilon(1e-7));
  CHECK(d.high == Approx(-0.7001142).epsilon(1e-7));
  CHECK(d.exact);
  CHECK(d.p_value == 4.0 / 1024.0);  // all signs alike, twice, and the one difference of 0 either way
  // s / sqrt(10) = 1.58 / 4.0621; t(0.975, 9) = 2.262157, t(0.8, 9) = 0.883404.
  REQUIRE(d.detectable);
  CHECK(*d.detectable == Approx((2.262157 + 0.883404) * 1.58 / 4.0621).epsilon(1e-4));

  // The same pairs three times are too many to flip: Student's t of 30 pairs.
  std::vector<double> a, b;
  for (int i = 0; i < 3; ++i) {
    a.insert(a.end(), first.begin(), first.end());
    b.insert(b.end(), second.begin(), second.end());
  }
  const PairedDifference many = paired_difference(a, b);
  CHECK_FALSE(many.exact);
  CHECK(many.p_value < 1e-6);
  CHECK(many.difference == Approx(-1.58));
}

TEST_CASE("pairs without a difference have none, and one pair or lists of two lengths are refused") {
  const std::vector<double> same(25, 1.5);
  const PairedDifference d = paired_difference(same, same);
  CHECK(d.p_value == 1.0);
  CHECK(d.detectable == 0.0);
  // Five pairs that all differ alike: the least p of sign flips is 2 / 32, and no difference could have shown.
  const PairedDifference few =
      paired_difference(std::vector<double>{2, 3, 4, 5, 6}, std::vector<double>{1, 2, 3, 4, 4});
  CHECK(few.p_value == 0.0625);
  CHECK_FALSE(few.detectable);
  CHECK_THROWS_AS(paired_difference(std::vector<double>{1.0}, std::vector<double>{2.0}), Error);
  CHECK_THROWS_AS(paired_difference(same, std::vector<double>(24, 1.0)), Error);
}

TEST_CASE("Holm's correction multiplies by what is left, and never falls") {
  std::vector<PairedDifference> family(4);
  const double p[] = {0.04, 0.01, 0.005, 0.03};
  for (std::size_t i = 0; i < 4; ++i) family[i].p_value = p[i];
  correct(family);
  CHECK(family[2].p_holm == Approx(0.02));
  CHECK(family[1].p_holm == Approx(0.03));
  CHECK(family[3].p_holm == Approx(0.06));
  CHECK(family[0].p_holm == Approx(0.06));  // 0.04 is below it
}

TEST_CASE("the detectable difference is found four times in five") {
  // Differences of mean `detectable` of samples of this size: normal ones by a fixed rule of their own.
  std::vector<double> zeros(12, 0.0), pattern;
  for (int i = 0; i < 12; ++i) pattern.push_back(i % 2 == 0 ? 1.0 : -1.0);
  const PairedDifference none = paired_difference(pattern, zeros);
  std::vector<double> shifted = pattern;
  for (double& value : shifted) value += *none.detectable;
  const PairedDifference found = paired_difference(shifted, zeros);
  CHECK(none.p_value == 1.0);
  CHECK(found.p_value < 0.05);
  CHECK(found.low > 0.0);
}
