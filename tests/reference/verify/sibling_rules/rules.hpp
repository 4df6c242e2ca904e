// The sibling rules as values, and what is asked of each of them.
#pragma once

#include <catch2/catch.hpp>

#include "reference/verify/sibling_rules/greedy_draft.hpp"
#include "reference/verify/sibling_rules/k_seq.hpp"
#include "reference/verify/sibling_rules/naive_sampling.hpp"
#include "reference/verify/sibling_rules/rrs.hpp"
#include "reference/verify/sibling_rules/rrsw.hpp"
#include "reference/verify/sibling_rules/target_only.hpp"
#include "tests/reference/verify/measured_distribution.hpp"
#include "tests/reference/verify/small_step.hpp"
#include "tests/support/statistical.hpp"

namespace draftproof::small_step {

using Models = ModelPair<Rational>;
using Masses = DenseMasses<Rational>;
using Siblings = std::span<const Token>;
using Nodes = std::span<const std::int32_t>;

inline constexpr auto kRrs = [](const auto& p, const auto& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                                auto& chance) { return accept_sibling_rrs(p, q, siblings, nodes, row, chance); };
inline constexpr auto kRrsw = [](const auto& p, const auto& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                                 auto& chance) { return accept_sibling_rrsw(p, q, siblings, nodes, row, chance); };
inline constexpr auto kKSeq = [](const auto& p, const auto& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                                 auto& chance) { return accept_sibling_k_seq(p, q, siblings, nodes, row, chance); };
inline constexpr auto kNaive = [](const auto& p, const auto& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                                  auto& chance) {
  return accept_sibling_naive_sampling(p, q, siblings, nodes, row, chance);
};
inline constexpr auto kTargetOnly = [](const auto& p, const auto& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                                       auto& chance) {
  return accept_sibling_target_only(p, q, siblings, nodes, row, chance);
};
inline constexpr auto kGreedyDraft = [](const auto& p, const auto& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                                        auto& chance) {
  return accept_sibling_greedy_draft(p, q, siblings, nodes, row, chance);
};

// Exact at single nodes of every kind of model for k = 1..k_max siblings, and over two steps enumerated together.
template <class Rule>
void check_exact(Drafting drafting, std::int32_t k_max, const Rule& rule) {
  for (const ModelKind kind : kModelKinds) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const Models models(3, seed, kind);
      for (std::int32_t k = 1; k <= k_max; ++k) {
        CAPTURE(name_of(kind), seed, k);
        CHECK(node_distribution(models.target({}), models.draft({}), k, drafting, rule).tokens == models.target({}));
      }
    }
    const Models models(3, 9, kind);
    CAPTURE(name_of(kind));
    const EnumeratedDistribution distribution = enumerate_two_steps([&](const TokenString& prefix, auto& chance) {
      return sibling_step(models, prefix, 2, drafting, chance, rule);
    });
    CHECK(distribution.reused == 0);
    CHECK_FALSE(first_difference(distribution.distribution, target_of(models), models.vocab_size()).has_value());
  }
}

// Doubles and Philox, three steps of k = 2 siblings, under the key audit.
template <class Rule>
void check_production(Drafting drafting, const Rule& rule) {
  for (const ModelKind kind : {ModelKind::dense, ModelKind::zeros}) {
    const ModelPair<double> models(3, 140, kind);
    const ChiSquaredTest test = measure(models, {}, [&](const TokenString& prefix, AuditedChance& chance) {
      return sibling_step(models, prefix, 2, drafting, chance, rule);
    });
    CAPTURE(name_of(kind));
    CHECK(test.df >= (kind == ModelKind::dense ? 100 : 10));
    CHECK(passes(test, 2));
  }
}

// The acceptance of k = 1..k_max siblings over random models is formula(p, q, k), and over the golden pair golden[k -
// 1].
template <class Rule, class Formula>
void check_acceptance(std::int32_t vocab_size, std::int32_t k_max, Drafting drafting, const Rule& rule,
                      const Formula& formula, const std::vector<Rational>& golden) {
  for (const ModelKind kind : kModelKinds) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Models models(vocab_size, seed, kind);
      for (std::int32_t k = 1; k <= k_max; ++k) {
        CAPTURE(name_of(kind), seed, k);
        CHECK(node_distribution(models.target({}), models.draft({}), k, drafting, rule).acceptance ==
              formula(models.target({}), models.draft({}), k));
      }
    }
  }
  for (std::size_t k = 1; k <= golden.size(); ++k) {
    CAPTURE(k);
    CHECK(node_distribution(golden_p(), golden_q(), static_cast<std::int32_t>(k), drafting, rule).acceptance ==
          golden[k - 1]);
  }
}

// With one sibling: the chain rule, decision by decision and bit by bit.
template <class Rule>
void check_chain_rule(const Rule& rule) {
  const ModelPair<double> models(5, 17, ModelKind::dense);
  int accepted = 0;
  for (std::uint32_t step = 0; step < 300; ++step) {
    const TokenString prefix{static_cast<Token>(step % 5), static_cast<Token>(step / 5 % 5)};
    DenseRows<double> target{{models.target(prefix), models.target(prefix)}};
    DenseRows<double> proposal{{models.draft(prefix)}};
    const std::vector<Token> draft{static_cast<Token>(step / 25 % 5)};
    PhiloxSource source;
    AddressedChance<PhiloxSource> chance(source, 18, step);
    const ChainOutcome chain = verify_chain(Siblings(draft), target, proposal, chance);
    const SiblingOutcome outcome = decide(target.rows[0], proposal.rows[0], Siblings(draft), 0, chance, rule);
    REQUIRE((outcome.accepted == 0) == (chain.num_accepted == 1));
    if (chain.num_accepted == 0) REQUIRE(outcome.token == chain.last_token);
    accepted += chain.num_accepted == 1;
  }
  CHECK(accepted > 50);
  CHECK(accepted < 290);
}

// How many of the random nodes a faulty rule gets right, of `of`; and its largest distance.
struct ControlCount {
  int exact = 0;
  int of = 0;
  Rational largest;
};

template <class Rule>
ControlCount count_exact(std::int32_t vocab_size, std::int32_t k, Drafting drafting, const Rule& rule) {
  ControlCount count;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Models models(vocab_size, seed, seed % 2 == 0 ? ModelKind::dense : ModelKind::zeros);
    const Rational d =
        distance(node_distribution(models.target({}), models.draft({}), k, drafting, rule).tokens, models.target({}));
    ++count.of;
    count.exact += d == 0;
    count.largest = std::max(count.largest, d);
  }
  return count;
}

}  // namespace draftproof::small_step
