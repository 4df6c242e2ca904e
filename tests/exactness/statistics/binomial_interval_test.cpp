#include "exactness/statistics/binomial_interval.hpp"

#include "tests/support/test.hpp"

namespace {

// P(X <= k) of n trials at rate p, summed term by term.
double at_most(int k, int n, double p) {
  double sum = 0.0;
  for (int i = 0; i <= k; ++i)
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1)) * std::pow(p, i) *
           std::pow(1.0 - p, n - i);
  return sum;
}

TEST_CASE("the limits of an interval are the rates at which the tails have half of what is left") {
  const Interval interval = clopper_pearson(7, 20, 0.95);
  CHECK(at_most(7, 20, interval.high) == Approx(0.025).epsilon(1e-9));
  CHECK(1.0 - at_most(6, 20, interval.low) == Approx(0.025).epsilon(1e-9));
}

TEST_CASE("no successes leave the rule of three and only successes its mirror image") {
  const Interval none = clopper_pearson(0, 100, 0.95);
  CHECK(none.low == 0.0);
  CHECK(none.high == Approx(1.0 - std::pow(0.025, 0.01)).epsilon(1e-10));
  const Interval all = clopper_pearson(100, 100, 0.95);
  CHECK(all.low == Approx(std::pow(0.025, 0.01)).epsilon(1e-10));
  CHECK(all.high == 1.0);
  CHECK(clopper_pearson(0, 0, 0.99).low == 0.0);
  CHECK(clopper_pearson(0, 0, 0.99).high == 1.0);
}

TEST_CASE("an interval covers at least as often as it says for every rate") {
  for (const double rate : {0.01, 0.2, 0.5, 0.93}) {
    double covered = 0.0;
    for (int k = 0; k <= 30; ++k) {
      const Interval interval = clopper_pearson(k, 30, 0.9);
      if (interval.low <= rate && rate <= interval.high)
        covered += at_most(k, 30, rate) - (k > 0 ? at_most(k - 1, 30, rate) : 0.0);
    }
    INFO("rate " << rate);
    CHECK(covered >= 0.9);
    CHECK(covered < 0.995);
  }
}

TEST_CASE("counts that cannot be are errors") {
  CHECK(error_of(ErrorKind::usage, [] { clopper_pearson(3, 2, 0.9); }).find("successes") != std::string::npos);
  CHECK(error_of(ErrorKind::usage, [] { clopper_pearson(1, 2, 1.0); }).find("(0, 1)") != std::string::npos);
}

}  // namespace
