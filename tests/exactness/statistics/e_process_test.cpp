#include "exactness/statistics/e_process.hpp"

#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

using CellCounts = std::array<std::int64_t, 4>;
constexpr std::array kDistribution{0.5, 0.25, 0.125, 0.125};

TEST_CASE("the wealth of a bettor is the ratio of Dirichlet mixture and distribution worked out by hand") {
  // Fair coin, a = (1, 1), two heads and a tail: B(3, 2) / B(1, 1) = 1/12 against 1/8.
  const std::array<std::int64_t, 2> counts{2, 1};
  CHECK(dirichlet_log_wealth(counts, std::array{0.5, 0.5}, 2.0) == Approx(std::log(8.0 / 12.0)).epsilon(1e-13));
  const std::array<std::int64_t, 2> impossible{2, 1};
  CHECK(dirichlet_log_wealth(impossible, std::array{1.0, 0.0}, 2.0) == std::numeric_limits<double>::infinity());
}

TEST_CASE("the wealth is a martingale under the distribution") {
  // Over all 4^5 sequences, the mean of the wealth is 1.
  double mean = 0.0;
  for (int sequence = 0; sequence < 1024; ++sequence) {
    CellCounts counts{};
    double probability = 1.0;
    for (int i = 0, rest = sequence; i < 5; ++i, rest /= 4) {
      ++counts[static_cast<std::size_t>(rest % 4)];
      probability *= kDistribution[static_cast<std::size_t>(rest % 4)];
    }
    mean += probability * std::exp(dirichlet_log_wealth(counts, kDistribution, 4.0));
  }
  CHECK(mean == Approx(1.0).epsilon(1e-12));
}

TEST_CASE("looking again and again accuses a correct sampler no more often than alpha") {
  const double alpha = 0.05;
  int accused = 0;
  int accused_by_peeking_at_p = 0;
  const int runs = 2000;
  for (int run = 0; run < runs; ++run) {
    TestRandom random(1000 + static_cast<std::uint64_t>(run));
    CellCounts counts{};
    bool rich = false, peeked = false;
    for (int i = 1; i <= 400; ++i) {
      ++counts[random.draw(kDistribution)];
      if (i < 50 || i % 25 != 0) continue;
      rich = rich || dirichlet_log_wealth(counts, kDistribution, 4.0) >= -std::log(alpha);
      double statistic = 0.0;
      for (std::size_t c = 0; c < 4; ++c) {
        const double expected = i * kDistribution[c];
        statistic +=
            (static_cast<double>(counts[c]) - expected) * (static_cast<double>(counts[c]) - expected) / expected;
      }
      peeked = peeked || statistic > 7.815;  // 5 %, 3 degrees of freedom
    }
    accused += rich ? 1 : 0;
    accused_by_peeking_at_p += peeked ? 1 : 0;
  }
  CHECK(possible_rates(accused, runs).low <= alpha);
  CHECK(accused > 0);  // the test can fail
  // Reason for an anytime-valid test: looking fifteen times at a chi-squared test more than doubles its false alarms.
  CHECK(possible_rates(accused_by_peeking_at_p, runs).low > 2 * alpha);
}

TEST_CASE("a biased sampler makes the bettor rich") {
  TestRandom random(5);
  CellCounts counts{};
  for (int i = 0; i < 20000; ++i) ++counts[random.draw(std::array{0.45, 0.3, 0.125, 0.125})];
  CHECK(dirichlet_log_wealth(counts, kDistribution, 4.0) >= -std::log(suite_level()));
}

}  // namespace
