// Against fractions worked out by hand, enumeration of all outcomes, and binomial tails.
#include "exactness/statistics/tail_bounds.hpp"

#include <boost/math/special_functions/beta.hpp>

#include "reference/numerics/boost_math.hpp"
#include "tests/support/test.hpp"

namespace {

// P(X >= k) of a binomial count.
double binomial_tail(std::int64_t n, double p, std::int64_t k) {
  return boost::math::ibeta(static_cast<double>(k), static_cast<double>(n - k + 1), p);
}

TEST_CASE("counts of unequal events have the probabilities worked out by hand") {
  // 1/2, 1/3, 1/4: none 6/24, one 11/24, two 6/24, three 1/24.
  const std::vector<EventDraws> draws{{1.0 / 2.0, 1}, {1.0 / 3.0, 1}, {1.0 / 4.0, 1}};
  CHECK(expected_events(draws) == Approx(13.0 / 12.0));
  CHECK(at_most(draws, 0) == Approx(6.0 / 24.0).epsilon(1e-15));
  CHECK(at_most(draws, 1) == Approx(17.0 / 24.0).epsilon(1e-15));
  CHECK(at_most(draws, 2) == Approx(23.0 / 24.0).epsilon(1e-15));
  CHECK(at_most(draws, 3) == 1.0);
  CHECK(at_least(draws, 3) == Approx(1.0 / 24.0).epsilon(1e-15));
  CHECK(at_least(draws, 2) == Approx(7.0 / 24.0).epsilon(1e-15));
  CHECK(at_least(draws, 0) == 1.0);
  CHECK(at_least(draws, 4) == 0.0);
  // Equal ones: 5 of 5 fair coins, and none of them.
  const std::vector<EventDraws> coins{{0.5, 2}, {0.5, 3}};
  CHECK(at_least(coins, 5) == Approx(1.0 / 32.0).epsilon(1e-13));
  CHECK(at_most(coins, 0) == Approx(1.0 / 32.0).epsilon(1e-13));
}

TEST_CASE("counts keep their accuracy far out, where a difference from 1 would lose it") {
  std::vector<EventDraws> draws{{1e-3, 10}, {2e-3, 10}};
  CHECK(at_least(draws, 20) == Approx(std::pow(2e-6, 10)).epsilon(1e-12));
  CHECK(at_most(std::vector<EventDraws>{{0.5, 40}, {0.75, 40}}, 0) == Approx(std::pow(0.125, 40)).epsilon(1e-12));
}

TEST_CASE("a count too large to be convolved is bounded from above, closely") {
  // Nearly equal probabilities, so that the binomial distribution at their mean is the answer within 1e-3.
  for (const double z : {4.0, 5.0, 7.0}) {
    INFO("z " << z);
    const std::int64_t half = 100000;
    const std::vector<EventDraws> draws{{0.29999, half}, {0.30001, half}};
    const double deviation = std::sqrt(2.0 * half * 0.21);
    const auto high = static_cast<std::int64_t>(60000 + z * deviation);
    const double exact = binomial_tail(2 * half, 0.3, high);
    CHECK(at_least(draws, high) > 0.999 * exact);
    CHECK(at_least(draws, high) < 1.25 * exact);
    const auto low = static_cast<std::int64_t>(60000 - z * deviation);
    const double exact_low = binomial_tail(2 * half, 0.7, 2 * half - low);
    CHECK(at_most(draws, low) > 0.999 * exact_low);
    CHECK(at_most(draws, low) < 1.25 * exact_low);
  }
}

TEST_CASE("the score of one draw has the moments of its distribution") {
  // p = 1/2, 1/4, 1/4: ln p - E ln p is (ln 2) / 2 or -(ln 2) / 2, each with probability 1/2.
  const double half = 0.5 * std::log(2.0);
  const std::vector<double> distribution{0.25, 0.0, 0.5, 0.25};
  const TiltedSum plain = tilted_score(distribution, 0.0);
  CHECK(plain.log_mgf == 0.0);
  CHECK(plain.mean == 0.0);
  CHECK(plain.variance == Approx(half * half).epsilon(1e-14));
  CHECK(plain.third == Approx(half * half * half).epsilon(1e-14));
  for (const double tilt : {-2.0, 0.7, 3.0}) {
    INFO("tilt " << tilt);
    const TiltedSum tilted = tilted_score(distribution, tilt);
    CHECK(tilted.log_mgf == Approx(std::log(std::cosh(tilt * half))).epsilon(1e-12));
    CHECK(tilted.mean == Approx(half * std::tanh(tilt * half)).epsilon(1e-12));
    CHECK(tilted.variance == Approx(half * half / std::pow(std::cosh(tilt * half), 2)).epsilon(1e-12));
  }
}

TEST_CASE("the bound of a sum of scores is above its exact tail everywhere, and close to it for many draws") {
  // Two tokens: the score is a linear function of a binomial count.
  const std::vector<double> distribution{0.7, 0.3};
  const double step = std::log(0.7 / 0.3);
  const auto bound = [&](std::int64_t n, std::int64_t count) {
    const double s = step * (static_cast<double>(count) - 0.7 * static_cast<double>(n));
    return tail_bound(s, [&](double tilt) {
      TiltedSum sum;
      sum.add(tilted_score(distribution, tilt), static_cast<double>(n));
      return sum;
    });
  };
  for (const std::int64_t n : {1, 2, 7, 30, 200}) {
    for (std::int64_t count = 0; count <= n; ++count) {
      INFO("count " << count << " of " << n);
      const bool is_high = static_cast<double>(count) >= 0.7 * static_cast<double>(n);
      const double exact = is_high ? binomial_tail(n, 0.7, count) : binomial_tail(n, 0.3, n - count);
      CHECK(bound(n, count) >= exact * (1.0 - 1e-9));
    }
  }
  const std::int64_t n = 100000;
  for (const double z : {4.0, 5.0, 6.0}) {
    const auto count = static_cast<std::int64_t>(70000 + z * std::sqrt(21000.0));
    INFO("z " << z);
    CHECK(bound(n, count) / binomial_tail(n, 0.7, count) < 1.25);
  }
}

TEST_CASE("the bound of a correlation is above its exact tail, and nearly that of a normal variable") {
  // One pair: 4 |u - 1/2| |v - 1/2| is a product of two uniform numbers, above x with probability 1 - x (1 - ln x).
  for (const double x : {0.1, 0.5, 0.9}) CHECK(correlation_bound(3.0 * x, 1) >= 1.0 - x * (1.0 - std::log(x)));
  CHECK(correlation_bound(0.0, 1000) == 1.0);
  CHECK(correlation_bound(0.05, 10000) == Approx(2.0 * std::exp(-12.5)).epsilon(0.1));
  CHECK(correlation_bound(-0.05, 10000) == correlation_bound(0.05, 10000));
  CHECK(correlation_bound(1.0, 128) < 1e-8);  // as many neighbouring seeds that draw the same
}

TEST_CASE("a sum of constants is never far out") {
  CHECK(tail_bound(1e-12, [](double) { return TiltedSum{}; }) == 1.0);
  CHECK(tail_bound(1.0, [](double) { return TiltedSum{}; }) == 0.0);
  CHECK(tilted_score(std::vector<double>{0.0, 1.0}, 1.0).variance == 0.0);
}

}  // namespace
