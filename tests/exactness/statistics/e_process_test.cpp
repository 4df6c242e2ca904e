#include "exactness/statistics/e_process.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof {
namespace {

const std::vector<double> kDistribution{0.5, 0.25, 0.125, 0.125};

TEST_CASE("the wealth of a bettor is the ratio of Dirichlet mixture and distribution worked out by hand") {
  // Fair coin, a = (1, 1), heads heads tails: B(3, 2) / B(1, 1) = 1/12 against 1/8.
  DirichletEProcess process(std::vector<double>{0.5, 0.5}, 2.0);
  for (const std::size_t cell : {0u, 0u, 1u}) process.add(cell);
  CHECK(process.log_wealth() == Approx(std::log(8.0 / 12.0)).epsilon(1e-13));
  // On the way it was 1, 1 (the first bet is the distribution itself) and 4/3.
  CHECK(process.log_wealth_max() == Approx(std::log(4.0 / 3.0)).epsilon(1e-13));
  CHECK(process.p_value() == Approx(0.75).epsilon(1e-13));
  CHECK(process.n() == 3);
}

TEST_CASE("the wealth is a martingale under the distribution") {
  // Over all 4^5 sequences, the mean of the wealth is 1.
  double mean = 0.0;
  for (int sequence = 0; sequence < 1024; ++sequence) {
    DirichletEProcess process(kDistribution);
    double probability = 1.0;
    for (int i = 0, rest = sequence; i < 5; ++i, rest /= 4) {
      process.add(static_cast<std::size_t>(rest % 4));
      probability *= kDistribution[static_cast<std::size_t>(rest % 4)];
    }
    mean += probability * std::exp(process.log_wealth());
  }
  CHECK(mean == Approx(1.0).epsilon(1e-12));
}

TEST_CASE("counts all at once have the wealth that one by one arrive at") {
  TestRandom random(3);
  DirichletEProcess process(kDistribution, 7.5);
  std::vector<std::int64_t> counts(4, 0);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t cell = random.draw(std::vector<double>{0.4, 0.3, 0.2, 0.1});
    process.add(cell);
    ++counts[cell];
  }
  CHECK(process.log_wealth() == Approx(dirichlet_log_wealth(counts, kDistribution, 7.5)).epsilon(1e-9));
  CHECK(process.log_wealth() > 10.0);
}

TEST_CASE("looking after every draw accuses a correct sampler no more often than alpha") {
  const double alpha = 0.05;
  int accused = 0;
  int accused_by_peeking_at_p = 0;
  const int runs = 2000;
  for (int run = 0; run < runs; ++run) {
    TestRandom random(1000 + static_cast<std::uint64_t>(run));
    DirichletEProcess process(kDistribution);
    std::vector<std::int64_t> counts(4, 0);
    bool peeked = false;
    for (int i = 1; i <= 400; ++i) {
      const std::size_t cell = random.draw(kDistribution);
      process.add(cell);
      ++counts[cell];
      if (i < 50 || i % 25 != 0) continue;
      double statistic = 0.0;
      for (std::size_t c = 0; c < 4; ++c) {
        const double expected = i * kDistribution[c];
        statistic +=
            (static_cast<double>(counts[c]) - expected) * (static_cast<double>(counts[c]) - expected) / expected;
      }
      peeked = peeked || statistic > 7.815;  // 5 %, 3 degrees of freedom
    }
    accused += process.rejects(alpha) ? 1 : 0;
    accused_by_peeking_at_p += peeked ? 1 : 0;
  }
  CHECK(possible_rates(accused, runs).low <= alpha);
  CHECK(accused > 0);  // the test can fail
  // Reason for an anytime-valid test: looking fifteen times at a chi-squared test more than doubles its false alarms.
  CHECK(possible_rates(accused_by_peeking_at_p, runs).low > 2 * alpha);
}

TEST_CASE("a biased sampler makes the bettor rich") {
  TestRandom random(5);
  DirichletEProcess process(kDistribution);
  int draws = 0;
  while (!process.rejects(suite_level()) && draws < 20000) {
    process.add(random.draw(std::vector<double>{0.45, 0.3, 0.125, 0.125}));
    ++draws;
  }
  CHECK(process.rejects(suite_level()));
  CHECK(process.p_value() <= suite_level());
}

TEST_CASE("a draw of probability zero is worth everything and distributions that are none are errors") {
  DirichletEProcess process(std::vector<double>{0.5, 0.5, 0.0});
  process.add(0);
  CHECK_FALSE(process.rejects(0.5));
  process.add(2);
  process.add(0);
  CHECK(process.log_wealth() == std::numeric_limits<double>::infinity());
  CHECK(process.p_value() == 0.0);
  CHECK(process.rejects(1e-300));
  CHECK_THROWS_WITH(DirichletEProcess(std::vector<double>{0.5, 0.4}), Catch::Contains("sum to"));
  CHECK_THROWS_WITH(DirichletEProcess(kDistribution, -1.0), Catch::Contains("concentration"));
  CHECK_THROWS_WITH(DirichletEProcess(std::vector<double>{1.5, -0.5}), Catch::Contains("below 0"));
}

}  // namespace
}  // namespace draftproof
