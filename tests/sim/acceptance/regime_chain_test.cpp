#include "sim/acceptance/regime_chain.hpp"

#include "sim/acceptance/rates.hpp"
#include "tests/sim/acceptance/sampled_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

struct Matrix {
  double a, b, c, d;  // rows (a b), (c d)
};
Matrix operator*(const Matrix& x, const Matrix& y) {
  return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
}
Matrix operator+(const Matrix& x, const Matrix& y) {
  return {x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
}

}  // namespace

TEST_CASE("the survival of two regimes is that of powers of a matrix") {
  const double good = 0.9;
  const double bad = 0.35;
  const double to_bad = 0.1;
  const double to_good = 0.3;
  const RegimeChain model(two_state_regimes(good, bad, to_bad, to_good), 3);
  const Matrix transition{1.0 - to_bad, to_bad, to_good, 1.0 - to_good};
  const Matrix accept{good, 0.0, 0.0, bad};
  const Matrix reject{1.0 - good, 0.0, 0.0, 1.0 - bad};
  const std::vector<double> survival = model.survival(6, 6);
  Matrix power{1, 0, 0, 1};
  for (const double s : survival) {
    power = power * accept;
    CHECK(s == Approx(0.75 * (power.a + power.b) + 0.25 * (power.c + power.d)));
    power = power * transition;
  }

  // Over the steps of a run with three drafts: the matrix from one step's first regime to the next one's.
  Matrix reached{1, 0, 0, 1};
  Matrix step{0, 0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    step = step + reached * reject * transition;
    reached = reached * accept * transition;
  }
  step = step + reached * transition;
  CHECK(step.a + step.b == Approx(1.0));
  const double share_good = step.c / (step.b + step.c);
  const std::vector<double> in_run = model.survival_in_run(3, 3);
  CHECK(in_run[0] == Approx(share_good * good + (1.0 - share_good) * bad));
  // Steps begin behind rejections, which are where texts are hard.
  CHECK(in_run[0] < survival[0]);
}

TEST_CASE("regimes are sampled from their survival, at fresh places and far into a run") {
  const RegimeChain markov(two_state_regimes(0.95, 0.3, 0.05, 0.1), 8);
  CHECK(follows(accepted_counts(markov, 5, 5, 50'000), lengths_of(markov.survival(5, 5)), 4));
  CHECK(follows(accepted_counts(markov, 5, 5, 20'000, 60), lengths_of(markov.survival_in_run(5, 5)), 4));
  const RegimeChain entropy(entropy_regimes(1.0, 0.2, 0.7), 8);
  CHECK(follows(accepted_counts(entropy, 4, 4, 50'000), lengths_of(entropy.survival(4, 4)), 4));
  CHECK(follows(accepted_counts(entropy, 4, 4, 20'000, 40), lengths_of(entropy.survival_in_run(4, 4)), 4));
  // The two differ, and the test sees it.
  CHECK_FALSE(follows(accepted_counts(markov, 5, 5, 20'000, 60), lengths_of(markov.survival(5, 5))));
}

TEST_CASE("the rate over entropies is the mean of the bound over an exponential distribution") {
  const Regimes regimes = entropy_regimes(1.0, 0.2, 0.5);
  double mean = 0.0;
  for (std::size_t c = 0; c < regimes.rates.size(); ++c) mean += regimes.start[c] * regimes.rates[c];
  // E[max(0, 1 - sqrt(H / 5))] for H ~ Exp(1), integrated apart.
  double integral = 0.0;
  constexpr int kPoints = 1'000'000;
  for (int i = 0; i < kPoints; ++i) {
    const double h = 5.0 * (i + 0.5) / kPoints;
    integral += std::exp(-h) * (1.0 - std::sqrt(h / 5.0)) * 5.0 / kPoints;
  }
  CHECK(mean == Approx(integral).epsilon(1e-4));
  // Without memory tokens are independent, and with no entropy every draft is accepted.
  const RegimeChain independent(entropy_regimes(1.0, 0.2, 0.0), 0);
  CHECK(independent.survival(3, 3)[2] == Approx(mean * mean * mean));
  CHECK(RegimeChain(entropy_regimes(0.0, 0.2, 0.5), 0).survival(2, 2) == std::vector<double>{1.0, 1.0});
}

TEST_CASE("a token of a text has one regime and one coin, whichever step drafts it") {
  const RegimeChain model(two_state_regimes(0.9, 0.4, 0.2, 0.3), 1);
  TestRandom random(3);
  for (std::uint64_t request = 0; request < 300; ++request) {
    AcceptanceState state = model.begin(request);
    const auto place = static_cast<std::int32_t>(random.below(40));
    const std::int32_t accepted = model.accepted(state, {place, place}, 10, 10);
    // Any place within the accepted drafts finds those behind it accepted, in whatever order it is asked for.
    for (std::int32_t i = accepted; i >= 0; --i)
      if (accepted < 10) CHECK(model.accepted(state, {place + i, place + i}, 10, 10) == accepted - i);
  }
}
