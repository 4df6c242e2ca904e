#include "exactness/statistics/holm.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("adjusted p values of Holm are those worked out by hand") {
  // Sorted .01 .02 .03 .04 times 4 3 2 1 = .04 .06 .06 .04, then the running maximum.
  const std::vector<double> adjusted = holm_adjusted(std::vector<double>{0.03, 0.01, 0.04, 0.02});
  CHECK(adjusted == std::vector<double>{0.06, 0.04, 0.06, 0.06});
  // A published example: p .010 .020 .030 with m = 3 gives .030 .040 .040.
  const std::vector<double> three = holm_adjusted(std::vector<double>{0.010, 0.020, 0.030});
  CHECK(three[0] == Approx(0.030));
  CHECK(three[1] == Approx(0.040));
  CHECK(three[2] == Approx(0.040));
}

TEST_CASE("Holm caps at one and leaves a lone test alone") {
  CHECK(holm_adjusted(std::vector<double>{0.2}) == std::vector<double>{0.2});
  CHECK(holm_adjusted(std::vector<double>{0.6, 0.9, 0.7}) == std::vector<double>{1.0, 1.0, 1.0});
  CHECK(holm_adjusted(std::vector<double>{0.0, 1.0}) == std::vector<double>{0.0, 1.0});
  CHECK(holm_adjusted({}).empty());
}

TEST_CASE("Holm rejects what the step-down rule rejects") {
  // Reject in ascending order while p_i <= alpha / (m - i + 1): here the second stops it, though the third is small.
  const double alpha = 0.05;
  const std::vector<double> p{0.001, 0.03, 0.031};
  const std::vector<double> adjusted = holm_adjusted(p);
  CHECK(adjusted[0] < alpha);
  CHECK(adjusted[1] > alpha);
  CHECK(adjusted[2] > alpha);
}

}  // namespace
