// The bound against a minimum over all sets of tokens. Golden numbers, and the rules against the bound: the claims of
// exactness/proof.
#include "reference/verify/optimal_transport.hpp"

#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

using Masses = DenseMasses<Rational>;
using Draw = std::function<void(DraftTree&, std::int32_t parent, const Masses& q, ExactChance&)>;
using WithinDistribution = std::map<std::uint32_t, Rational>;  // set of drafted tokens as bits, its probability

// The distribution of the set of tokens that the drafts hold.
WithinDistribution drafted_sets(const Masses& q, const Draw& draw) {
  WithinDistribution distribution;
  ExactChance chance;
  do {
    DraftTree tree;
    draw(tree, kRootNode, q, chance);
    std::uint32_t set = 0;
    for (const Token token : tree.tokens) set |= 1u << token;
    distribution[set] += chance.probability();
  } while (chance.next());
  return distribution;
}

// min over every H of p(H) + 1 - Pr(all drafts in H), by the definition.
Rational brute_force(const Masses& p, const Masses& q, const Draw& draw) {
  const WithinDistribution sets = drafted_sets(q, draw);
  Rational best(2);
  for (std::uint32_t h = 0; h < 1u << p.size(); ++h) {
    Rational value(1);
    for (std::size_t x = 0; x < p.size(); ++x)
      if (h >> x & 1) value += p[x];
    for (const auto& [set, probability] : sets)
      if ((set & ~h) == 0) value -= probability;
    best = std::min(best, value);
  }
  return best;
}

}  // namespace

TEST_CASE("the transport bound is the minimum over all sets of tokens, and greedy drafts reach theirs") {
  using proof_steps::distinct_children, proof_steps::greedy_children, proof_steps::growing_step,
      proof_steps::iid_children;
  for (const ModelKind kind : kModelKinds) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Models models(4, seed, kind);
      const Masses& p = models.target({});
      const Masses& q = models.draft({});
      for (std::int32_t k = 1; k <= 3; ++k) {
        CAPTURE(name_of(kind), seed, k);
        const auto size = static_cast<std::size_t>(k);
        CHECK(optimal_acceptance_with_replacement(p, q, size) == brute_force(p, q, iid_children(k)));
        CHECK(optimal_acceptance_without_replacement(p, q, size) == brute_force(p, q, distinct_children(k)));
        CHECK(brute_force(p, q, greedy_children(k)) ==
              step_distribution(growing_step(greedy_children(k), proof_steps::greedy_draft), models, {}, 1)
                  .mean_accepted);
      }
    }
  }
}

TEST_CASE("the transport bound has its limits") {
  const Masses golden_p{Rational(1, 2), Rational(3, 10), Rational(1, 5)};
  const Masses golden_q{Rational(1, 5), Rational(3, 10), Rational(1, 2)};
  for (const std::size_t k : {1, 2, 4}) {
    CHECK(optimal_acceptance_with_replacement(golden_p, golden_p, k) == 1);
    CHECK(optimal_acceptance_without_replacement(golden_p, golden_p, k) == 1);
    const Masses left{1, 0};
    const Masses right{0, 1};
    CHECK(optimal_acceptance_with_replacement(left, right, k) == 0);
    CHECK(optimal_acceptance_without_replacement(left, right, k) == 0);
  }
  // Without drafts nothing is accepted.
  CHECK(optimal_acceptance_with_replacement(golden_p, golden_q, 0) == 0);
  CHECK(optimal_acceptance_without_replacement(golden_p, golden_q, 0) == 0);
  // A vocabulary of one.
  CHECK(optimal_acceptance_with_replacement(Masses{1}, Masses{1}, 2) == 1);
  // More drafts than q has tokens.
  CHECK(optimal_acceptance_without_replacement(golden_p, Masses{1, 0, 0}, 3) == golden_p[0]);
}

TEST_CASE("the transport bound of doubles is that of the fractions up to rounding") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Models exact(5, seed, ModelKind::zeros);
    const ModelPair<double> rounded(5, seed, ModelKind::zeros);
    for (std::size_t k = 1; k <= 3; ++k) {
      CHECK(optimal_acceptance_with_replacement(rounded.target({}), rounded.draft({}), k) ==
            Approx(static_cast<double>(optimal_acceptance_with_replacement(exact.target({}), exact.draft({}), k)))
                .margin(1e-14));
      CHECK(optimal_acceptance_without_replacement(rounded.target({}), rounded.draft({}), k) ==
            Approx(static_cast<double>(optimal_acceptance_without_replacement(exact.target({}), exact.draft({}), k)))
                .margin(1e-14));
    }
  }
}

TEST_CASE("tokens of equal ratio stand in order of their ids") {
  const Masses p{Rational(1, 4), Rational(1, 4), 0, Rational(1, 2), 0};
  const Masses q{Rational(1, 4), Rational(1, 4), Rational(1, 2), 0, 0};
  CHECK(tokens_by_falling_ratio(p, q) == std::vector<Token>{2, 0, 1, 3});
}
