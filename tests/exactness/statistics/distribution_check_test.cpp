// The verdict of a demo on samples written by hand.
#include "exactness/statistics/distribution_check.hpp"

#include "exactness/statistics/test_result.hpp"
#include "tests/support/test.hpp"

namespace {

// `counts` of the strings (0, 0), (0, 1), (1, 0), (1, 1).
std::vector<DistributionString> strings(const std::vector<int>& counts) {
  std::vector<DistributionString> out;
  for (int cell = 0; cell < 4; ++cell)
    out.insert(out.end(), static_cast<std::size_t>(counts[static_cast<std::size_t>(cell)]),
               {Token{cell / 2}, Token{cell % 2}});
  return out;
}

const std::vector<double> kUniform(4, 0.25);

TEST_CASE("samples that follow the distribution are no finding, and the sentence says what would have been found") {
  const DistributionCheck check =
      compare_distributions(strings({250, 260, 240, 250}), strings({255, 245, 250, 250}), kUniform);
  CHECK(check.samples == 1000);
  CHECK_FALSE(check.is_finding());
  CHECK(check.exact.df == 3);
  CHECK(check.exact.statistic == Approx(200.0 / 250.0));  // 0, 10, 10 and 0 off 250
  CHECK(check.verdict() == "speculation emits the target's distribution");
  CHECK(check.scope() == "1000 strings of two tokens, level 0.0001 each");
  REQUIRE(check.evidence().size() == 2);
  CHECK_THAT(check.evidence()[1], Contains("against the exact distribution chi-squared 0.8 on 3 degrees of freedom"));
  CHECK(check.sentence() ==
        check.verdict() + ": " + check.scope() + "; " + check.evidence()[0] + "; " + check.evidence()[1]);
}

TEST_CASE("a wrong second token with a right first one is a finding, and of a lossless verifier a failure") {
  DistributionCheck check =
      compare_distributions(strings({400, 100, 100, 400}), strings({250, 250, 250, 250}), kUniform);
  CHECK(check.is_finding());
  CHECK(check.is_failure());
  CHECK(check.verdict() == "speculation does not emit the target's distribution");
  check.lossless = false;
  CHECK(check.is_finding());
  CHECK_FALSE(check.is_failure());
  CHECK_THAT(check.verdict(), Contains("as is to be expected of a lossy verifier"));
}

TEST_CASE("one string of probability zero is a finding whatever the tests say") {
  const std::vector<double> narrow = {0.5, 0.0, 0.25, 0.25};
  const DistributionCheck check = compare_distributions(strings({4, 1, 2, 1}), strings({4, 1, 2, 1}), narrow);
  REQUIRE(check.impossible);
  CHECK(*check.impossible == DistributionString{0, 1});
  CHECK(check.impossible_count == 2);
  CHECK(check.is_finding());
  CHECK(check.evidence().back() == "2 strings have probability zero, the first of them tokens 0, 1");
}

TEST_CASE("the worst test has cells to show and the smallest p value") {
  std::vector<TestResult> tests(3);
  CHECK(worst_test(tests) == nullptr);
  tests[0].p_value = 0.01;
  tests[1].p_value = 0.2;
  tests[2].p_value = 0.1;
  tests[1].worst_cells.resize(1);
  tests[2].worst_cells.resize(1);
  CHECK(worst_test(tests) == &tests[2]);
}

}  // namespace
