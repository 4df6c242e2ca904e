#include "reference/verify/lossy/target_only_thresholds.hpp"

#include <catch2/catch.hpp>

#include "reference/verify/chance.hpp"
#include "reference/verify/sibling_rules/target_only.hpp"
#include "reference/verify/tree.hpp"
#include "tests/reference/verify/lossy/lossy_distribution.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/statistical.hpp"

using namespace draftproof;

namespace {

using Thresholds = AcceptThresholds<Rational>;

const LossyRow kP{Rational(1, 2), Rational(3, 10), Rational(1, 5)};

// The distribution of the outcome at one node: (accepted sibling + 1, token).
template <class Rule>
OutputDistribution node_distribution(const LossyRow& p, const std::vector<Token>& siblings, const Rule& rule) {
  std::vector<std::int32_t> nodes;
  for (std::size_t j = 0; j < siblings.size(); ++j) nodes.push_back(static_cast<std::int32_t>(j));
  return enumerated_distribution([&](LossyChance& chance) {
    const SiblingOutcome outcome = rule(p, LossyRow{}, siblings, nodes, 0, chance);
    return TokenString{outcome.token, outcome.accepted + 1};
  });
}

// SGLang's loop with its coin u on a grid, and the residual's distribution added up at each u.
LossyRow distribution_by_loop(const LossyRow& p, const std::vector<Token>& siblings, const Thresholds& thresholds,
                              int grid) {
  LossyRow distribution(p.size(), Rational(0));
  for (int i = 0; i < grid; ++i) {
    const Rational u(i, grid);
    Rational cumulative(0);
    bool accepted = false;
    LossyRow undrafted = p;
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
  const auto distribution = [&](const Thresholds& t) {
    return first_token_distribution(node_distribution(kP, siblings, ThresholdedTargetOnly<Rational>{t}), 3);
  };
  CHECK(distribution({Rational(1, 2), 1}) == LossyRow{1, 0, 0});
  CHECK(thresholded_distance(kP, siblings, {Rational(1, 2), 1}) == Rational(1, 2));
  const Thresholds nine_tenths{Rational(9, 10), Rational(9, 10)};
  CHECK(distribution(nine_tenths) == LossyRow{Rational(5, 9), Rational(1, 3), Rational(1, 9)});
  CHECK(thresholded_distance(kP, siblings, nine_tenths) == Rational(4, 45));
  CHECK(distribution({1, Rational(3, 10)}) == LossyRow{1, 0, 0});
  CHECK(distribution({1, 1}) == kP);
}

TEST_CASE("the thresholded rule has its declared distribution and that of the loop with a coin") {
  const std::vector<std::vector<Token>> sibling_lists{{}, {0}, {2}, {1, 2}, {2, 0, 1}};
  const auto check = [&](const LossyRow& p, bool against_loop) {
    for (const std::vector<Token>& siblings : sibling_lists)
      for (const Rational& acc : {Rational(1, 3), Rational(3, 4), Rational(1)})
        for (const Rational& single : {Rational(1, 3), Rational(2, 3), Rational(1)}) {
          const Thresholds thresholds{acc, single};
          const LossyRow distribution =
              first_token_distribution(node_distribution(p, siblings, ThresholdedTargetOnly<Rational>{thresholds}), 3);
          INFO("theta " << acc << ", " << single << ", " << siblings.size() << " siblings");
          CHECK(distribution == thresholded_distribution<Rational>(p, siblings, thresholds));
          CHECK(total_variation_of(p, distribution) == thresholded_distance<Rational>(p, siblings, thresholds));
          if (against_loop) CHECK(distribution == distribution_by_loop(p, siblings, thresholds, 30));
        }
  };
  check(kP, true);  // every C / theta is a multiple of 1/30, so a grid of 30 coins is exact
  for (const ModelKind kind : {ModelKind::dense, ModelKind::zeros, ModelKind::one_hot_target})
    for (std::uint64_t seed = 0; seed < 4; ++seed) check(ModelPair<Rational>(3, seed, kind).target({}), false);
}

TEST_CASE("with both thresholds at one the rule is target-only sampling") {
  for (const ModelKind kind : kModelKinds)
    for (const std::vector<Token>& siblings : std::vector<std::vector<Token>>{{}, {0}, {2, 1}, {1, 1}, {0, 1, 2}}) {
      const ModelPair<Rational> models(3, 9, kind);
      const LossyRow& p = models.target({});
      const auto exact = [](auto&&... arguments) { return accept_sibling_target_only(arguments...); };
      const OutputDistribution distribution = node_distribution(p, siblings, ThresholdedTargetOnly<Rational>{});
      CHECK(distribution == node_distribution(p, siblings, exact));
      CHECK(first_token_distribution(distribution, 3) == p);
    }
}

TEST_CASE("thresholds below one are refuted over a tree and thresholds at one are not") {
  const ModelPair<Rational> models(3, 1, ModelKind::dense);
  const TargetDistribution target = [&](const TokenString& text) -> const LossyRow& { return models.target(text); };
  const auto distribution_of = [&](const Thresholds& thresholds) {
    const auto draft = [&](std::span<const Token> path) -> const LossyRow& { return models.draft(path); };
    const DraftTree tree = top_k_children(draft, branching_shape({2, 2}));
    DenseRows<Rational> rows;
    for (std::int32_t node = kRootNode; node < tree.size(); ++node) rows.rows.push_back(models.target(tree.path(node)));
    return enumerated_distribution([&](LossyChance& chance) {
      const ThresholdedTargetOnly<Rational> rule{thresholds};
      return emitted_tokens(tree, verify_tree(tree, rows, rows, rule, chance));
    });
  };
  CHECK_FALSE(first_difference(distribution_of({1, 1}), target, 3).has_value());
  CHECK(first_difference(distribution_of({Rational(9, 10), 1}), target, 3).has_value());
  CHECK(first_difference(distribution_of({1, Rational(3, 10)}), target, 3).has_value());
}

TEST_CASE("the thresholded rule in floats has the proved distribution and uses no address twice") {
  const DenseMasses<double> p{0.5, 0.3, 0.2};
  const std::vector<Token> siblings{0, 1};
  const std::vector<std::int32_t> nodes{0, 1};
  const ThresholdedTargetOnly<double> rule{{0.9, 0.9}};
  const auto counts = count_in_floats(5, 3, [&](auto& chance) { return rule(p, p, siblings, nodes, 0, chance).token; });
  const std::vector<double> expected{5.0 / 9, 1.0 / 3, 1.0 / 9};
  CHECK(follows(counts, expected));
  CHECK_FALSE(follows(counts, p));
}

TEST_CASE("a threshold outside its range is an error that names it") {
  const auto message = [](AcceptThresholds<double> t) { return error_of(ErrorKind::usage, [&] { validate(t); }); };
  CHECK(message({0.0, 1.0}).find("theta_acc") != std::string::npos);
  CHECK(message({1.0, 1.5}).find("theta_single") != std::string::npos);
  CHECK_NOTHROW(validate(AcceptThresholds<double>{}));
}
