#include "sim/acceptance/beta_mixture.hpp"

#include "sim/acceptance/rates.hpp"
#include "tests/sim/acceptance/sampled_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

// The mean of f(r) over Beta(alpha, beta), by the rule of midpoints on x = r with the density's logarithm.
template <class F>
double beta_mean(BetaShape shape, F f) {
  constexpr int kPoints = 200'000;
  double sum = 0.0;
  double weight = 0.0;
  for (int i = 0; i < kPoints; ++i) {
    const double r = (i + 0.5) / kPoints;
    const double density = std::exp((shape.alpha - 1.0) * std::log(r) + (shape.beta - 1.0) * std::log1p(-r));
    sum += density * f(r);
    weight += density;
  }
  return sum / weight;
}

}  // namespace

TEST_CASE("the survival of a Beta mixture is the moments of its rates") {
  const BetaShape shape = beta_of(0.7, 0.2, "test");
  CHECK(shape.alpha / (shape.alpha + shape.beta) == Approx(0.7));
  CHECK(beta_mean(shape, [](double r) { return r; }) == Approx(0.7).epsilon(1e-6));
  CHECK(beta_mean(shape, [](double r) { return (r - 0.7) * (r - 0.7); }) == Approx(0.04).epsilon(1e-5));
  const BetaMixture model(shape, 1.0, 5);
  const std::vector<double> survival = model.survival(8, 8);
  for (int i = 1; i <= 8; ++i)
    CHECK(survival[static_cast<std::size_t>(i - 1)] ==
          Approx(beta_mean(shape, [&](double r) { return std::pow(r, i); })).epsilon(1e-6));
  // Survivors are the better ones: the conditional rate rises.
  const std::vector<double> conditional = conditional_of(survival, "test");
  for (std::size_t i = 1; i < conditional.size(); ++i) CHECK(conditional[i] > conditional[i - 1]);
}

TEST_CASE("a Beta mixture is sampled from its survival, decay included") {
  for (const double decay : {1.0, 0.9}) {
    const BetaMixture model(beta_of(0.75, 0.18, "test"), decay, 9);
    const std::vector<double> survival = model.survival(6, 6);
    CHECK(follows(accepted_counts(model, 6, 6, 100'000), lengths_of(survival), 2));
    CHECK(survival[2] ==
          Approx(std::pow(decay, 3) * BetaMixture(beta_of(0.75, 0.18, "test"), 1.0, 9).survival(3, 3)[2]));
  }
}

TEST_CASE("in a run low rates have more steps: survival is weighted by the steps of a token") {
  const BetaShape shape = beta_of(0.6, 0.25, "test");
  const BetaMixture model(shape, 1.0, 2);
  const auto tokens = [](double r) { return 1.0 + r + r * r + r * r * r; };
  const std::vector<double> in_run = model.survival_in_run(3, 3);
  const double steps = beta_mean(shape, [&](double r) { return 1.0 / tokens(r); });
  for (int i = 1; i <= 3; ++i)
    CHECK(in_run[static_cast<std::size_t>(i - 1)] ==
          Approx(beta_mean(shape, [&](double r) { return std::pow(r, i) / tokens(r); }) / steps).epsilon(1e-4));
  CHECK(in_run[0] < model.survival(3, 3)[0]);
  // Without weights the classes add up to the distribution: at one draft a step's tokens are 1 + r.
  const std::vector<double> one = model.survival_in_run(1, 1);
  CHECK(1.0 / (1.0 + one[0]) == Approx(beta_mean(shape, [](double r) { return 1.0 / (1.0 + r); })).epsilon(1e-4));
  // Tokens of a step are then the harmonic mean over requests.
  CHECK(acceptance_length_of(in_run) == Approx(1.0 / steps).epsilon(1e-4));
}

TEST_CASE("a Beta mixture has sure requests where its rates pile up at 1 and hopeless ones where they do at 0") {
  for (const BetaShape shape : {BetaShape{0.01, 0.01}, {0.5, 0.01}, {0.01, 0.5}, {1.05, 0.055}, {3.0, 0.1}}) {
    INFO(shape.alpha << ' ' << shape.beta);
    const BetaMixture model(shape, 1.0, 5);
    // P(r > 1/2), and so many requests have all of 64 drafts accepted as E[r^64] says.
    constexpr int kRequests = 4000;
    int all = 0;
    for (int request = 0; request < kRequests; ++request) {
      AcceptanceState state = model.begin(static_cast<std::uint64_t>(request));
      all += model.accepted(state, {0, 0}, 64, 64) == 64 ? 1 : 0;
    }
    const double expected = model.survival(64, 64)[63];
    CHECK(all / double{kRequests} == Approx(expected).margin(5.0 * std::sqrt(expected / kRequests)));
    // A request's coins are its own: one of a class at the top wins each time.
    if (shape.beta > 0.02) continue;
    int sure = 0;
    for (int request = 0; request < kRequests; ++request) {
      int wins = 0;
      for (int step = 0; step < 20; ++step) {
        AcceptanceState state = model.begin(static_cast<std::uint64_t>(request));
        wins += model.accepted(state, {step, step}, 64, 64) == 64 ? 1 : 0;
      }
      sure += wins == 20 ? 1 : 0;
    }
    CHECK(sure / double{kRequests} == Approx(expected).margin(0.05));
  }
}

TEST_CASE("a Beta mixture that cannot be is refused") {
  CHECK(error_of(ErrorKind::usage, [] { beta_of(1.0, 0.1, "x"); }) ==
        "x: the mean rate is 1.000000; expected a number in (0, 1)");
  CHECK_THROWS_WITH(beta_of(0.5, 0.5, "x"), Contains("below sqrt(mean (1 - mean)) = 0.5"));
}
