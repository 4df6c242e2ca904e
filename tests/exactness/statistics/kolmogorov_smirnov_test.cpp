// Against published values of the exact distribution, the exact one-sided distribution, and distributions simple enough
// for a pencil.
#include "exactness/statistics/kolmogorov_smirnov.hpp"

#include "tests/support/test.hpp"

namespace {

// P(D_n^+ >= d), exact (Birnbaum and Tingey, 1951). Twice that is the two-sided tail up to its square.
double one_sided_tail(int n, double d) {
  double sum = 0.0;
  for (int j = 0; j <= static_cast<int>(n * (1.0 - d)); ++j) {
    const double a = d + static_cast<double>(j) / n;
    if (a >= 1.0) continue;
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(j + 1) - std::lgamma(n - j + 1) + (j - 1) * std::log(a) +
                    (n - j) * std::log1p(-a));
  }
  return d * sum;
}

TEST_CASE("the exact distribution has the published values") {
  CHECK(kolmogorov_cdf(10, 0.274) == Approx(0.62847961545650).epsilon(1e-13));
  CHECK(kolmogorov_cdf(100, 0.1) == Approx(0.74730724299362).epsilon(1e-13));
}

TEST_CASE("the distribution of one and of two numbers is the one worked out by hand") {
  // n = 1: D = max(u, 1 - u), so P(D < d) = 2 d - 1 from 1/2 on. n = 2, d in [1/4, 1/2]: 2 (2 d - 1/2)^2.
  CHECK(kolmogorov_cdf(1, 0.4) == Approx(0.0).margin(1e-15));
  CHECK(kolmogorov_cdf(1, 0.8) == Approx(0.6).epsilon(1e-14));
  CHECK(kolmogorov_cdf(2, 0.4) == Approx(2.0 * 0.3 * 0.3).epsilon(1e-13));
  CHECK(kolmogorov_cdf(2, 0.0) == 0.0);
  CHECK(kolmogorov_cdf(2, 1.0) == 1.0);
  CHECK(kolmogorov_p_value(0, 0.5) == 1.0);
}

TEST_CASE("the approximation for many numbers continues the exact distribution") {
  // Scaled by sqrt n the distribution hardly moves between 100, the last exact one, and 101.
  for (const double x : {0.6, 0.8, 1.0, 1.2, 1.5, 1.8}) {
    INFO("x " << x);
    CHECK(kolmogorov_cdf(101, x / std::sqrt(101.0)) == Approx(kolmogorov_cdf(100, x / 10.0)).margin(5e-4));
  }
  // Kolmogorov's limit distribution, from tables.
  CHECK(kolmogorov_p_value(100'000'000, 1.3580986 / 1e4) == Approx(0.05).epsilon(1e-3));
  CHECK(kolmogorov_p_value(100'000'000, 1.6276236 / 1e4) == Approx(0.01).epsilon(1e-3));
}

TEST_CASE("p values in the tail are twice the exact one-sided ones and rarely too small") {
  for (const int n : {50, 100, 101, 300, 3000}) {
    for (const double alpha : {1e-2, 1e-4, 1e-6, 1e-8}) {
      const double exact = 2.0 * one_sided_tail(n, kolmogorov_critical_distance(n, alpha));
      INFO("n " << n << ", alpha " << alpha);
      CHECK(exact < 1.02 * alpha);  // what is called alpha is hardly more
      CHECK(exact > 0.8 * alpha);   // and not much less
    }
  }
}

TEST_CASE("a detectable distance is found as often as it says at its worst point") {
  // A distribution with F(1/2) = 1/2 + distance; at that point alone the chance to pass the critical distance is a
  // binomial tail.
  const std::int64_t n = 10000;
  const double critical = kolmogorov_critical_distance(n, 1e-6);
  const double detectable = detectable_kolmogorov_distance(n, 1e-6, 0.99);
  const double deviations = (detectable - critical) / std::sqrt(0.25 / static_cast<double>(n));
  CHECK(std::erfc(-deviations / std::sqrt(2.0)) / 2.0 == Approx(0.99).epsilon(1e-9));
  CHECK(detectable_kolmogorov_distance(0, 1e-6, 0.99) == 1.0);
  CHECK(detectable_kolmogorov_distance(3, 1e-6, 0.99) == 1.0);
}

TEST_CASE("the distance of values from uniform is found at the steps") {
  CHECK(uniform_distance({0.5}) == 0.5);
  CHECK(uniform_distance({0.9, 0.1, 0.5}) == Approx(1.0 / 3.0 - 0.1));
  CHECK(uniform_distance({0.25, 0.75}) == 0.25);
  CHECK(uniform_distance({0.0, 0.0}) == 1.0);
  CHECK(uniform_distance({}) == 0.0);
}

}  // namespace
