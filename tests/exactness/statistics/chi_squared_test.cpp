// Against numbers worked out by hand, published critical values and non-centralities, and a simulated null.
#include "exactness/statistics/chi_squared.hpp"

#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

using Counts = std::vector<std::int64_t>;

TEST_CASE("the statistic of a die is the one worked out by hand") {
  // 60 throws, expected 10 each: (25 + 4 + 1 + 4 + 0 + 100) / 10
  const ChiSquaredTest test = goodness_of_fit(Counts{5, 8, 9, 8, 10, 20}, std::vector<double>(6, 1.0 / 6.0));
  CHECK(test.n == 60);
  CHECK(test.cells == 6);
  CHECK(test.df == 5);
  CHECK(test.statistic == Approx(13.4).epsilon(1e-12));
  CHECK(test.p_value == Approx(0.0199).epsilon(2e-3));  // tables: 13.388 is the 2 % point
  CHECK_FALSE(test.impossible_cell);
}

TEST_CASE("p values are those of the published critical values") {
  // Critical values of level 1e-6 from another program: p must come back as 1e-6.
  const std::array<std::pair<std::int64_t, double>, 7> critical = {
      {{1, 23.93}, {3, 30.66}, {7, 40.52}, {15, 56.49}, {63, 131.37}, {255, 377.08}, {1023, 1252.58}}};
  for (const auto& [df, value] : critical) {
    INFO("df " << df);
    CHECK(chi_squared_p_value(value, df) == Approx(1e-6).epsilon(5e-3));
  }
  // Two degrees of freedom are exponential: p = exp(-x / 2).
  CHECK(chi_squared_p_value(2.0, 2) == Approx(0.36787944117144233).epsilon(1e-14));
  CHECK(chi_squared_p_value(0.0, 4) == 1.0);
  CHECK(chi_squared_p_value(123.0, 0) == 1.0);
}

TEST_CASE("the detectable distance follows from the non-centrality") {
  // lambda = 99.7 for 63 degrees of freedom, 99 % power and level 1e-4: battery_test.cpp has it with the others.
  const double tv = detectable_total_variation(1e6, 63, 1e-4, 0.99);
  CHECK(4e6 * tv * tv == Approx(99.7).epsilon(2e-3));
  CHECK(detectable_total_variation(10.0, 255, 1e-4, 0.99) == 1.0);
  CHECK(detectable_total_variation(1e6, 0, 1e-4, 0.99) == 1.0);
}

TEST_CASE("cells that expect less than five are pooled in ascending order") {
  // N = 100: expected 1, 2, 3, 4, 40, 50. The first three make 6, then 4 takes 40 with it.
  const ChiSquaredTest test =
      goodness_of_fit(Counts{3, 1, 5, 4, 37, 50}, std::vector<double>{.01, .02, .03, .04, .4, .5});
  CHECK(test.cells == 3);
  CHECK(test.df == 2);
  CHECK(test.statistic == Approx(9.0 / 6.0 + 9.0 / 44.0 + 0.0).epsilon(1e-12));
}

TEST_CASE("a rest that stays below five joins the last pool") {
  // N = 20: expected 1, 1, 18 in ascending order. The first pool takes all three.
  const ChiSquaredTest all = goodness_of_fit(Counts{2, 18, 0}, std::vector<double>{.05, .9, .05});
  CHECK(all.cells == 1);
  CHECK(all.df == 0);
  CHECK(all.p_value == 1.0);
  // Two samples of 8 in three cells: 6 + 6, 1 + 1, 1 + 1. Expected 1 and 1 begin the only pool.
  CHECK(two_sample_test(Counts{6, 1, 1}, Counts{6, 1, 1}).cells == 1);
}

TEST_CASE("one observation of an impossible cell refutes the distribution") {
  const std::vector<double> distribution{0.5, 0.5, 0.0, 0.0};
  const ChiSquaredTest test = goodness_of_fit(Counts{500, 499, 0, 1}, distribution);
  REQUIRE(test.impossible_cell);
  CHECK(*test.impossible_cell == 3);
  CHECK(test.impossible_count == 1);
  CHECK(test.p_value > 0.5);
  CHECK(test.rejects(1e-9));
  CHECK_FALSE(goodness_of_fit(Counts{500, 500, 0, 0}, distribution).rejects(1e-4));
}

TEST_CASE("the statistic of two samples is that of the two by two table") {
  // Rows 30 70 and 50 150, n = 300. n (ad - bc)^2 / (r1 r2 c1 c2) = 300 (4500 - 3500)^2 / (100 200 80 220).
  const ChiSquaredTest test = two_sample_test(Counts{30, 70}, Counts{50, 150});
  CHECK(test.n == 300);
  CHECK(test.df == 1);
  CHECK(test.statistic == Approx(300.0 * 1000.0 * 1000.0 / (100.0 * 200.0 * 80.0 * 220.0)).epsilon(1e-12));
  // Cells that neither sample saw do not count.
  CHECK(two_sample_test(Counts{30, 0, 70}, Counts{50, 0, 150}).df == 1);
}

TEST_CASE("under the null the p values are uniform and under a fault they are not") {
  const std::vector<double> distribution{0.5, 0.25, 0.125, 0.125};
  const auto sample = [](std::uint64_t seed, std::uint32_t shift) {
    Counts counts(4);
    for (std::uint32_t i = 0; i < 400; ++i) {
      const std::uint32_t u = PhiloxSource().block(seed, {i, 0, 0, Purpose::choice}).word[0] >> 26;  // 0..63
      const std::uint32_t v = u < shift ? 63 : u;
      ++counts[v < 32 ? 0 : v < 48 ? 1 : v < 56 ? 2 : 3];
    }
    return counts;
  };
  int below_half = 0;
  int below_half_of_two = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    below_half += goodness_of_fit(sample(seed, 0), distribution).p_value < 0.5 ? 1 : 0;
    below_half_of_two += two_sample_test(sample(seed, 0), sample(seed + 1000, 0)).p_value < 0.5 ? 1 : 0;
  }
  // As often as not, but for what the steps of a discrete statistic of 400 draws can do.
  constexpr double kSteps = 0.03;
  for (const int below : {below_half, below_half_of_two}) {
    const Interval rates = possible_rates(below, 400, 2);
    CHECK(rates.low < 0.5 + kSteps);
    CHECK(rates.high > 0.5 - kSteps);
  }
  // 16 of 64 moved from the first cell to the last: TV 1/4, lambda = 400 (1/8 + 1/2) = 250.
  CHECK_FALSE(passes(goodness_of_fit(sample(7, 16), distribution), 2));
  CHECK_FALSE(passes(two_sample_test(sample(7, 16), sample(8, 0)), 2));
}

TEST_CASE("bad input of a chi-squared test is an error that says what is wrong") {
  CHECK_THROWS_WITH(goodness_of_fit(Counts{1}, std::vector<double>{.5, .5}), Contains("they must agree"));
  CHECK_THROWS_WITH(goodness_of_fit(Counts{1, -1}, std::vector<double>{.5, .5}), Contains("negative"));
  CHECK_THROWS_WITH(goodness_of_fit(Counts{1, 1}, std::vector<double>{.5, .6}), Contains("sum to 1"));
  CHECK_THROWS_WITH(goodness_of_fit(Counts{1, 1}, std::vector<double>{.5, 0.0 / 0.0}), Contains("[0, 1]"));
  CHECK_THROWS_WITH(two_sample_test(Counts{0, 0}, Counts{1, 1}), Contains("empty"));
  CHECK_THROWS_WITH(two_sample_test(Counts{1, 0}, Counts{1}), Contains("they must agree"));
}

}  // namespace
