// The G statistic and the pooling under it, against numbers worked out by hand.
#include "exactness/statistics/chi_squared.hpp"
#include "tests/support/test.hpp"

namespace {

using Counts = std::vector<std::int64_t>;

// Pools of counts against a distribution.
std::vector<PoolCount> pooled(const Counts& counts, std::vector<double> distribution, double expected_min = 5.0) {
  double n = 0.0;
  for (const std::int64_t count : counts) n += static_cast<double>(count);
  for (double& p : distribution) p *= n;
  return pool_counts(PooledCells(distribution, expected_min), counts, distribution);
}
double g_of(const Counts& counts, const std::vector<double>& distribution) {
  return g_statistic(pooled(counts, distribution));
}

TEST_CASE("the G statistic of a die is the one worked out by hand") {
  // 60 throws, expected 10 each: 2 (5 ln .5 + 8 ln .8 + 9 ln .9 + 8 ln .8 + 0 + 20 ln 2)
  const auto counts = pooled({5, 8, 9, 8, 10, 20}, std::vector<double>(6, 1.0 / 6.0));
  const double by_hand =
      2.0 * (5.0 * std::log(0.5) + 16.0 * std::log(0.8) + 9.0 * std::log(0.9) + 20.0 * std::log(2.0));
  CHECK(g_statistic(counts) == Approx(by_hand).epsilon(1e-13));
  // Williams: 1 + (6 * 6 - 1) / (6 * 60 * 5)
  CHECK(williams_divisor(counts) == Approx(1.0 + 35.0 / 1800.0).epsilon(1e-13));
}

TEST_CASE("cells without observations count in G by what others have too many") {
  // 100 in the first of two even cells: 2 * 100 ln 2.
  CHECK(g_of({100, 0}, {0.5, 0.5}) == Approx(200.0 * std::log(2.0)));
  CHECK(g_of({50, 50}, {0.5, 0.5}) == 0.0);
}

TEST_CASE("G is additive over a decomposition and Pearson is not") {
  // Cells (a, b, c): first {a, b} against c, then a against b given that it is one of them.
  const std::vector<double> distribution{0.2, 0.3, 0.5};
  const double whole = g_of({130, 270, 600}, distribution);
  CHECK(whole == Approx(g_of({400, 600}, {0.5, 0.5}) + g_of({130, 270}, {0.4, 0.6})).epsilon(1e-12));
  const double pearson = goodness_of_fit(Counts{130, 270, 600}, distribution).statistic;
  const double pearson_parts = goodness_of_fit(Counts{400, 600}, std::vector<double>{0.5, 0.5}).statistic +
                               goodness_of_fit(Counts{130, 270}, std::vector<double>{0.4, 0.6}).statistic;
  CHECK(std::abs(pearson - pearson_parts) > 0.1);
}

TEST_CASE("a larger least expectation pools more") {
  // N = 100: expected 1, 2, 3, 4, 40, 50.
  const Counts counts{3, 1, 5, 4, 37, 50};
  const std::vector<double> distribution{.01, .02, .03, .04, .4, .5};
  CHECK(pooled(counts, distribution).size() == 3);
  CHECK(pooled(counts, distribution, 0.5).size() == 6);
  CHECK(pooled(counts, distribution, 25.0).size() == 2);
  CHECK(pooled(counts, distribution, 60.0).size() == 1);
}

TEST_CASE("a cell that expects as much as the limit is a pool of its own") {
  // Powers of two, so that the sums are exact.
  const auto pools = [](std::vector<double> expected) { return PooledCells(expected, 4.0).size(); };
  CHECK(pools({4.0, 4.0, 4.0}) == 3);
  CHECK(pools({std::nextafter(4.0, 0.0), 4.0, 4.0}) == 2);
  CHECK(pools({1.0, 3.0, 4.0}) == 2);  // a sum that reaches the limit closes its pool
  CHECK(pools({1.0, std::nextafter(3.0, 0.0), 8.0}) == 1);
  // In ascending order, whatever order they came in.
  CHECK(pools({8.0, 2.0, 2.0}) == 2);
  // N = 64: expected 4, 4, 56 against the limit of 4.
  const ChiSquaredTest test = goodness_of_fit(Counts{2, 6, 56}, std::vector<double>{0.0625, 0.0625, 0.875}, 4.0);
  CHECK(test.cells == 3);
  CHECK(test.statistic == 2.0);
}

TEST_CASE("pools hold every possible cell once and enough of each") {
  const std::vector<double> expected{7.0, 0.0, 1.0, 30.0, 2.0, 1.0, 3.0, 0.5};
  const PooledCells pools(expected, 5.0);
  std::vector<int> seen(expected.size(), 0);
  for (std::size_t i = 0; i < pools.size(); ++i) {
    double sum = 0.0;
    for (const std::size_t cell : pools.members(i)) {
      ++seen[cell];
      sum += expected[cell];
    }
    CHECK(sum >= 5.0);
  }
  CHECK(seen == std::vector<int>{1, 0, 1, 1, 1, 1, 1, 1});
  CHECK(PooledCells(std::vector<double>{0.0, 0.0}, 5.0).size() == 0);
  CHECK(PooledCells(std::vector<double>{1.0, 1.0}, 5.0).size() == 1);
}

}  // namespace
