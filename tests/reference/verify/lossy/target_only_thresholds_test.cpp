#include "reference/verify/lossy/target_only_thresholds.hpp"

#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<Rational>;
using Thresholds = AcceptThresholds<Rational>;

const Row kP{Rational(1, 2), Rational(3, 10), Rational(1, 5)};

// The distribution of the outcome at one node: (token, accepted sibling + 1).
template <class Rule>
OutputDistribution node_distribution(const Row& p, const std::vector<Token>& siblings, const Rule& rule) {
  std::vector<std::int32_t> nodes(siblings.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  OutputDistribution distribution;
  ExactChance chance;
  do {
    const SiblingOutcome outcome = rule(p, Row{}, siblings, nodes, 0, chance);
    distribution[{outcome.token, outcome.accepted + 1}] += chance.probability();
  } while (chance.next());
  return distribution;
}
Row token_distribution(const Row& p, const std::vector<Token>& siblings, const Thresholds& thresholds) {
  Row row(p.size(), Rational(0));
  for (const auto& [outcome, probability] : node_distribution(p, siblings, ThresholdedTargetOnly<Rational>{thresholds}))
    row[static_cast<std::size_t>(outcome[0])] += probability;
  return row;
}

// SGLang's loop with its coin u on a grid, and the residual's distribution added up at each u.
Row distribution_by_loop(const Row& p, const std::vector<Token>& siblings, const Thresholds& thresholds, int grid) {
  Row distribution(p.size(), Rational(0));
  for (int i = 0; i < grid; ++i) {
    const Rational u(i, grid);
    Rational cumulative(0);
    bool accepted = false;
    Row undrafted = p;
    for (const Token token : siblings) {
      const auto x = static_cast<std::size_t>(token);
      cumulative += p[x];
      undrafted[x] = 0;
      if ((u < cumulative / thresholds.acc && p[x] > 0) || p[x] >= thresholds.single) {
        distribution[x] += Rational(1, grid);
        accepted = true;
        break;
      }
    }
    if (accepted) continue;
    for (std::size_t x = 0; x < p.size(); ++x) distribution[x] += undrafted[x] / total_of(undrafted) / grid;
  }
  return distribution;
}

}  // namespace

TEST_CASE("thresholds give the distributions and distances worked out by hand") {
  const std::vector<Token> siblings{0, 1};
  const auto distribution = [&](const Thresholds& t) { return token_distribution(kP, siblings, t); };
  CHECK(distribution({Rational(1, 2), 1}) == Row{1, 0, 0});
  CHECK(thresholded_distance(kP, siblings, {Rational(1, 2), 1}) == Rational(1, 2));
  const Thresholds nine_tenths{Rational(9, 10), Rational(9, 10)};
  CHECK(distribution(nine_tenths) == Row{Rational(5, 9), Rational(1, 3), Rational(1, 9)});
  CHECK(thresholded_distance(kP, siblings, nine_tenths) == Rational(4, 45));
  CHECK(distribution({1, Rational(3, 10)}) == Row{1, 0, 0});
  CHECK(distribution({1, 1}) == kP);
}

TEST_CASE("the thresholded rule has its declared distribution and that of the loop with a coin") {
  const std::vector<std::vector<Token>> sibling_lists{{}, {0}, {2}, {1, 2}, {2, 0, 1}};
  const auto check = [&](const Row& p, bool against_loop) {
    for (const std::vector<Token>& siblings : sibling_lists)
      for (const Rational& acc : {Rational(1, 3), Rational(3, 4), Rational(1)})
        for (const Rational& single : {Rational(1, 3), Rational(2, 3), Rational(1)}) {
          const Thresholds thresholds{acc, single};
          const Row distribution = token_distribution(p, siblings, thresholds);
          INFO("theta " << acc << ", " << single << ", " << siblings.size() << " siblings");
          CHECK(distribution == thresholded_distribution<Rational>(p, siblings, thresholds));
          CHECK(total_variation_of(p, distribution) == thresholded_distance<Rational>(p, siblings, thresholds));
          if (against_loop) CHECK(distribution == distribution_by_loop(p, siblings, thresholds, 30));
        }
  };
  check(kP, true);  // every C / theta is a multiple of 1/30, so a grid of 30 coins is exact
  for (const ModelKind kind : {ModelKind::dense, ModelKind::zeros, ModelKind::one_hot_target})
    for (std::uint64_t seed = 0; seed < 4; ++seed) check(Models(3, seed, kind).target({}), false);
}

TEST_CASE("with both thresholds at one the rule is target-only sampling, decision by decision") {
  for (const ModelKind kind : kModelKinds)
    for (const std::vector<Token>& siblings : std::vector<std::vector<Token>>{{}, {0}, {2, 1}, {1, 1}, {0, 1, 2}}) {
      const Models models(3, 9, kind);
      CHECK(node_distribution(models.target({}), siblings, ThresholdedTargetOnly<Rational>{}) ==
            node_distribution(models.target({}), siblings, proof_steps::target_only));
    }
}

TEST_CASE("a threshold outside its range is an error that names it") {
  const auto message = [](AcceptThresholds<double> t) { return error_of(ErrorKind::usage, [&] { validate(t); }); };
  CHECK(message({0.0, 1.0}).find("theta_acc") != std::string::npos);
  CHECK(message({1.0, 1.5}).find("theta_single") != std::string::npos);
  CHECK_NOTHROW(validate(AcceptThresholds<double>{}));
}
