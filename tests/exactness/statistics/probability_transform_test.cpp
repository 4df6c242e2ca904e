#include "exactness/statistics/probability_transform.hpp"

#include "exactness/statistics/kolmogorov_smirnov.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

TEST_CASE("tokens are ranked by falling probability and ties by id") {
  const std::vector<double> distribution{0.1, 0.3, 0.0, 0.3, 0.3};
  const std::vector<double> before = masses_ranked_before(distribution);
  CHECK(before[1] == 0.0);
  CHECK(before[3] == Approx(0.3));
  CHECK(before[4] == Approx(0.6));
  CHECK(before[0] == Approx(0.9));
  for (const Token token : {0, 1, 3, 4}) {
    INFO("token " << token);
    CHECK(mass_ranked_before(distribution, token) == Approx(before[static_cast<std::size_t>(token)]).margin(1e-15));
  }
}

// `count` draws, each from a distribution of its own; those of a biased sampler are at temperature `temperature`.
UniformTally transformed_draws(std::uint64_t seed, int count, double temperature) {
  TestRandom random(seed);
  UniformTally tally;
  std::vector<double> distribution(7), drawn(7);
  for (int i = 0; i < count; ++i) {
    double sum = 0.0, drawn_sum = 0.0;
    for (std::size_t t = 0; t < distribution.size(); ++t) {
      const double logit = 1.5 * static_cast<double>(random.normal());
      sum += distribution[t] = std::exp(logit);
      drawn_sum += drawn[t] = std::exp(logit / temperature);
    }
    for (double& p : distribution) p /= sum;
    double u = random.uniform() * drawn_sum;
    std::size_t token = 0;
    while (token + 1 < distribution.size() && u >= drawn[token]) u -= drawn[token++];
    tally.add(mass_ranked_before(distribution, static_cast<Token>(token)) + random.uniform() * distribution[token]);
  }
  return tally;
}

TEST_CASE("draws from a thousand different distributions become one uniform sample") {
  const UniformTally tally = transformed_draws(11, 20000, 1.0);
  CHECK(tally.n() == 20000);
  CHECK(kolmogorov_p_value(tally.n(), tally.distance()) > suite_level(2));
  CHECK(follows(tally.binned(16), std::vector<double>(16, 1.0 / 16.0), 2));
}

TEST_CASE("a wrong temperature shows in the transform of draws that all have distributions of their own") {
  const UniformTally tally = transformed_draws(11, 20000, 1.1);
  CHECK(kolmogorov_p_value(tally.n(), tally.distance()) < suite_level(2));
}

TEST_CASE("a tally keeps counts and merges") {
  UniformTally a, b;
  a.add(0.0);
  a.add(0.49);
  b.add(0.51);
  b.add(1.0);  // rounding can reach it
  a.merge(b);
  CHECK(a.n() == 4);
  CHECK(a.binned(2) == std::vector<std::int64_t>{2, 2});
  CHECK(a.binned(4) == std::vector<std::int64_t>{1, 1, 1, 1});
  CHECK(UniformTally().distance() == 0.0);
}

TEST_CASE("the distance of a tally is the exact one to within a cell") {
  TestRandom random(4);
  std::vector<double> values;
  UniformTally tally;
  for (int i = 0; i < 500; ++i) {
    values.push_back(random.uniform());
    tally.add(values.back());
  }
  const double exact = uniform_distance(values);
  CHECK(tally.distance() <= exact + 1e-15);
  CHECK(tally.distance() >= exact - 1.0 / static_cast<double>(UniformTally::kCells));
}

}  // namespace
