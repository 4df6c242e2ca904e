#include "exactness/statistics/battery.hpp"

#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

TestResult chi_squared(const std::string& name, std::int64_t n, std::int64_t df, double statistic) {
  TestResult test;
  test.name = name;
  test.statistic_name = "Pearson X^2";
  test.unit = "draws";
  test.n = n;
  test.df = df;
  test.statistic = statistic;
  test.p_value = chi_squared_p_value(statistic, df);
  return test;
}

TEST_CASE("the share of a test case in the false alarms of the suite is fixed") {
  CHECK(kSuiteFalseAlarms == 1e-6);
  for (const int decisions : {1, 2, 5, 36})
    CHECK(suite_level(decisions) * decisions * kSuiteCases == Approx(kSuiteFalseAlarms).epsilon(1e-12));
}

TEST_CASE("each kind of decision in the suite is refused just beyond its level") {
  // A single decision stands at 5e-9, which is 5.85 standard deviations to either side of a normal distribution.
  REQUIRE(suite_level() == Approx(5e-9).epsilon(1e-12));
  CHECK(has_mean(1.0 + 5.84 * 0.02, 1.0, 2.0, 10000));
  CHECK_FALSE(has_mean(1.0 + 5.86 * 0.02, 1.0, 2.0, 10000));
  CHECK_FALSE(has_mean(1.0 - 5.86 * 0.02, 1.0, 2.0, 10000));
  CHECK(has_mean(1.0 - 5.86 * 0.02, 1.0, 2.0, 10000, 2));
  // The standard deviation of 10,000 fair coins is 50.
  const std::vector<double> fair{0.5, 0.5};
  CHECK(follows(std::vector<std::int64_t>{5292, 4708}, fair));
  CHECK_FALSE(follows(std::vector<std::int64_t>{5293, 4707}, fair));
  CHECK(follows(std::vector<std::int64_t>{5293, 4707}, fair, 2));
  CHECK_FALSE(follows(std::vector<std::int64_t>{5000, 5000, 1}, std::vector<double>{0.5, 0.5, 0.0}));
  // Exact: 28 heads in a row have probability 3.7e-9 and 29 have 1.9e-9; either side has 2.5e-9.
  CHECK(has_rate(28, 28, 0.5));
  CHECK_FALSE(has_rate(29, 29, 0.5));
  CHECK_FALSE(has_rate(0, 29, 0.5));
  CHECK(has_rate(29, 29, 0.5, 2));
  // Few expect too little for so low a level, so that cells are pooled and nothing is left to tell apart.
  CHECK(follows(std::vector<std::int64_t>{20, 0}, fair));
}

TEST_CASE("published noncentralities at three levels") {
  // lambda for 99 % power at levels 1e-2, 1e-4 and 1e-6, from another program.
  struct Row {
    std::int64_t df;
    double lambda[3];
  };
  const Row rows[] = {{1, {24.0, 38.7, 52.1}},      {3, {29.8, 45.4, 59.5}},   {7, {36.4, 53.5, 68.5}},
                      {15, {44.9, 64.3, 80.8}},     {63, {72.4, 99.7, 121.8}}, {255, {125.8, 169.0, 202.8}},
                      {1023, {231.6, 306.4, 363.7}}};
  const double levels[] = {1e-2, 1e-4, 1e-6};
  for (const Row& row : rows) {
    for (int i = 0; i < 3; ++i) {
      INFO("df " << row.df << ", level " << levels[i]);
      CHECK(chi_squared_noncentrality(row.df, levels[i], 0.99) == Approx(row.lambda[i]).epsilon(2.5e-3));
    }
  }
}

TEST_CASE("tests judged together are corrected and say what they could have found") {
  std::vector<TestResult> tests{chi_squared("a", 1000000, 15, 90.0), chi_squared("b", 1000000, 15, 14.0)};
  tests[0].worst_cells = {{{{"group", 3}, {"token", 17}}, 1234.0, 1000.0}};
  tests[1].covers_all = true;
  judge(tests, 1e-6);
  CHECK(tests[0].rejects);
  CHECK(tests[0].p_value_holm == Approx(2.0 * tests[0].p_value));
  CHECK_FALSE(tests[1].rejects);
  // At level alpha / 2, the first step of Holm.
  const double lambda = chi_squared_noncentrality(15, 0.5e-6, 0.99);
  CHECK(tests[1].detectable_tv == Approx(std::sqrt(lambda / 4e6)));
  CHECK(detectable_distance(tests) == tests[1].detectable_tv);
  CHECK(tests[0].sentence.find("refuted at level 1e-06") != std::string::npos);
  CHECK(tests[0].sentence.find("group 3, token 17: 1234 observed, 1000 expected") != std::string::npos);
  CHECK(tests[1].sentence.find("nothing found") != std::string::npos);
  CHECK(tests[1].sentence.find("would have been found with 99 % probability") != std::string::npos);
}

TEST_CASE("an impossible event needs no statistics and its absence bounds its probability") {
  TestResult test;
  test.name = "support";
  test.unit = "draws";
  test.null_distribution = NullDistribution::certainty;
  test.n = 1000;
  std::vector<TestResult> tests{test};
  judge(tests, 1e-6);
  CHECK_FALSE(tests[0].rejects);
  CHECK(std::pow(1.0 - tests[0].detectable_tv, 1000) == Approx(0.01));
  tests[0].statistic = 1.0;
  tests[0].p_value = 0.0;
  judge(tests, 1e-6);
  CHECK(tests[0].rejects);
  CHECK(tests[0].sentence.find("1 of 1000 draws are impossible") != std::string::npos);
}

TEST_CASE("too few observations are no proof and say so") {
  std::vector<TestResult> tests{chi_squared("a", 60, 1, 0.2)};
  judge(tests, 1e-6);
  CHECK(tests[0].detectable_tv < 1.0);
  tests = {chi_squared("a", 10, 1, 0.2)};
  judge(tests, 1e-6);
  CHECK(tests[0].detectable_tv == 1.0);
  CHECK(tests[0].sentence.find("cannot show") != std::string::npos);
  CHECK(detectable_distance({}) == 1.0);
}

TEST_CASE("cells are ranked by how surprising their counts are") {
  const CountedCell rare{{{"token", 1}}, 3.0, 0.01};
  const CountedCell common{{{"token", 2}}, 10100.0, 10000.0};
  const CountedCell impossible{{{"token", 3}}, 1.0, 0.0};
  const CountedCell right{{{"token", 4}}, 50.0, 50.0};
  CHECK(surprise(right) == 0.0);
  CHECK(surprise(impossible) == std::numeric_limits<double>::infinity());
  CHECK(surprise({{}, 0.0, 4.0}) == Approx(8.0));
  std::vector<CountedCell> cells{right, common, rare, impossible};
  keep_worst(cells);
  CHECK(cells[0].label() == "token 3");
  CHECK(cells[1].label() == "token 1");
  CHECK(cells[3].label() == "token 4");
  cells.assign(25, common);
  keep_worst(cells);
  CHECK(cells.size() == kWorstCellsMax);
}

}  // namespace
