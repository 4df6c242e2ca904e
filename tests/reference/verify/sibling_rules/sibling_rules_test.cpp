// The rules for the children of one node, beside their proofs with two children (exactness/proof): one to three
// children, drafts of a kind that a rule does not take, and the ends of the coins in doubles.
#include "reference/random/injected.hpp"
#include "reference/verify/chance.hpp"
#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

// One node in doubles, its children numbered from 0.
template <class Rule, class Source>
SiblingOutcome decide(const Rule& rule, const DenseMasses<double>& p, const DenseMasses<double>& q,
                      const std::vector<Token>& siblings, AddressedChance<Source>& chance) {
  std::vector<std::int32_t> nodes(siblings.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  return rule(p, q, std::span<const Token>(siblings), std::span<const std::int32_t>(nodes), 0, chance);
}

// The same with one word for every use of `purpose`.
template <class Rule>
SiblingOutcome decide_at(const RandomBlock& word, Purpose purpose, const Rule& rule, const DenseMasses<double>& p,
                         const DenseMasses<double>& q, const std::vector<Token>& siblings) {
  InjectedSource source;
  source.inject(purpose, word);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  return decide(rule, p, q, siblings, chance);
}

using Rationals = DenseMasses<Rational>;
const Models kGolden(Rationals{Rational(1, 2), Rational(3, 10), Rational(1, 5)},
                     Rationals{Rational(1, 5), Rational(3, 10), Rational(1, 2)});

struct RuleOverDrafts {
  std::string name;
  ProofSteps step;

  template <class Draw, class Rule>
  RuleOverDrafts(std::string of, Draw draw, Rule rule)
      : name(std::move(of)), step(exact_only(proof_steps::growing_step(draw, rule))) {}
};

// Rules over `k` children of the kinds that they are exact for. rho* of k_seq is rounded up to 1/16: fractions are
// short then.
std::vector<RuleOverDrafts> rules_over(std::int32_t k) {
  using namespace proof_steps;
  const auto coarse_k_seq = [](const auto& p, const auto& q, auto siblings, auto nodes, std::uint32_t row,
                               auto& chance) {
    using Number = std::remove_cvref_t<decltype(p[0])>;
    const Number rho = k_seq_rho(p, q, siblings.size(), Number(Number(1) / 16));
    return accept_sibling_k_seq(p, q, siblings, nodes, row, chance, rho);
  };
  return {{"rrs, independent", iid_children(k), rrs},
          {"rrsw, independent", iid_children(k), rrsw},
          {"k_seq, independent", iid_children(k), coarse_k_seq},
          {"k_seq with rho = k, independent", iid_children(k), k_seq_with_rho_k},
          {"naive, independent", iid_children(k), naive},
          {"target_only, independent", iid_children(k), target_only},
          {"rrsw, distinct", distinct_children(k), rrsw},
          {"naive, distinct", distinct_children(k), naive},
          {"target_only, distinct", distinct_children(k), target_only},
          {"importance, independent", iid_children(k), importance},
          {"importance of two tokens, independent", iid_children(k),
           [](auto&&... a) { return accept_sibling_importance(a..., 2); }},
          {"greedy_draft, greedy", greedy_children(k), greedy_draft},
          {"naive, greedy", greedy_children(k), naive},
          {"target_only, greedy", greedy_children(k), target_only}};
}

}  // namespace

TEST_CASE("every rule is exact for one to three children of every kind that it takes") {
  for (std::int32_t k = 1; k <= 3; ++k)
    for (const RuleOverDrafts& rule : rules_over(k))
      for (const ModelKind kind : kModelKinds)
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
          INFO(rule.name << ", k = " << k << ", " << name_of(kind) << ", seed " << seed);
          CHECK(is_exact(rule.step, Models(3, seed, kind), 1));
        }
}

TEST_CASE("importance with every token weighed accepts the transport bound, of one to four children") {
  for (std::int32_t k = 1; k <= 4; ++k)
    for (const ModelKind kind : kModelKinds)
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const Models models(4, seed, kind);
        INFO("k = " << k << ", " << name_of(kind) << ", seed " << seed);
        const auto step = proof_steps::growing_step(proof_steps::iid_children(k), proof_steps::importance);
        CHECK(step_distribution(step, models, {}, 1).mean_accepted ==
              optimal_acceptance_with_replacement(models.target({}), models.draft({}), static_cast<std::size_t>(k)));
      }
}

TEST_CASE("rules are biased for children that are drawn otherwise") {
  using namespace proof_steps;
  const std::vector<RuleOverDrafts> wrong{{"rrs, distinct", distinct_children(2), rrs},
                                          {"k_seq, distinct", distinct_children(2), k_seq},
                                          {"importance, distinct", distinct_children(2), importance},
                                          {"rrs, greedy", greedy_children(2), rrs},
                                          {"rrsw, greedy", greedy_children(2), rrsw},
                                          {"greedy_draft, independent", iid_children(2), greedy_draft}};
  for (const RuleOverDrafts& rule : wrong) {
    INFO(rule.name);
    int exact = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      exact += is_exact(rule.step, Models(4, seed, seed % 2 == 0 ? ModelKind::dense : ModelKind::zeros), 1);
    CHECK(exact < 10);
  }
}

TEST_CASE("duplicates are trials of their own in rrs, passed over in rrsw, and worth more as trials here") {
  using namespace proof_steps;
  const Models models(Rationals{Rational(1, 11), Rational(5, 11), Rational(5, 11)},
                      Rationals{Rational(3, 5), Rational(3, 10), Rational(1, 10)});
  CHECK(step_distribution(growing_step(iid_children(2), rrs), models, {}, 1).mean_accepted == Rational(191, 275));
  CHECK(step_distribution(growing_step(iid_children(2), rrsw), models, {}, 1).mean_accepted == Rational(166, 275));
}

TEST_CASE("with one child a rule is the chain rule decision by decision and bit by bit") {
  const ModelPair<double> models(5, 17, ModelKind::dense);
  const auto check = [&](const auto& rule) {
    int accepted = 0;
    for (std::uint32_t step = 0; step < 300; ++step) {
      const TokenString prefix{static_cast<Token>(step % 5), static_cast<Token>(step / 5 % 5)};
      DenseRows<double> target{{models.target(prefix), models.target(prefix)}};
      DenseRows<double> proposal{{models.draft(prefix)}};
      const std::vector<Token> draft{static_cast<Token>(step / 25 % 5)};
      PhiloxSource source;
      AddressedChance<PhiloxSource> chance(source, 18, step);
      const ChainOutcome chain = verify_chain(std::span<const Token>(draft), target, proposal, chance);
      const SiblingOutcome outcome = decide(rule, target.rows[0], proposal.rows[0], draft, chance);
      REQUIRE((outcome.accepted == 0) == (chain.num_accepted == 1));
      if (chain.num_accepted == 0) REQUIRE(outcome.token == chain.last_token);
      accepted += chain.num_accepted == 1;
    }
    CHECK(accepted > 50);
    CHECK(accepted < 290);
  };
  check(proof_steps::rrs);
  check(proof_steps::rrsw);
  check(proof_steps::k_seq);
  check(proof_steps::importance);
  check(proof_steps::greedy_draft);
}

TEST_CASE("a residual that rounds to nothing is survived by rrs, and a rest of q that does is exhausted for rrsw") {
  const auto rejecting = [](const auto& rule, const DenseMasses<double>& p, const DenseMasses<double>& q,
                            const std::vector<Token>& siblings) {
    return decide_at(InjectedSource::kOnes, Purpose::accept, rule, p, q, siblings);
  };
  CHECK(rejecting(proof_steps::rrs, {0x1p-70, 1.0}, {0x1p-69, 1.0}, {0, 0, 0}) == SiblingOutcome{kNoSibling, 1});
  const SiblingOutcome rest =
      rejecting(proof_steps::rrsw, {0.5, 0.25, 0.25}, {1.0, 0x1p-70, 0x1p-70}, {0, 1, 2});  // below 2^-62
  CHECK(rest.accepted == kNoSibling);
  CHECK(rest.token > 0);
}

TEST_CASE("a sibling that the target forbids is rejected by every coin and one that is as likely accepted") {
  for (const RandomBlock& word : {InjectedSource::kZeros, InjectedSource::kSmallest, InjectedSource::kOnes}) {
    const DenseMasses<double> p{0.0, 0.25, 0.75};
    CHECK(decide_at(word, Purpose::accept, proof_steps::rrs, p, {0.5, 0.25, 0.25}, {0, 2}) == SiblingOutcome{1, 2});
    CHECK(decide_at(word, Purpose::accept, proof_steps::rrs, p, p, {2}) == SiblingOutcome{0, 2});
  }
}

TEST_CASE("a sibling that q cannot produce is passed over by rrsw, whatever the coins say") {
  const SiblingOutcome outcome =
      decide_at(InjectedSource::kZeros, Purpose::accept, proof_steps::rrsw, {0.0, 0.25, 0.75}, {1.0, 0.0, 0.0}, {0, 1});
  CHECK(outcome.accepted == kNoSibling);
  CHECK(outcome.token > 0);
}

TEST_CASE("a last sibling without mass outside the top set is one more fixed sibling of a greedy draft") {
  // q ends inside the top set: naive sampling over the two.
  const auto draw = [](DraftTree& tree, std::int32_t parent, const auto&, auto&) {
    for (const Token token : {2, 0}) tree.add(token, parent);
  };
  const Models models(kGolden.target({}), Rationals{0, 0, 1});
  const ProofSteps step = proof_steps::growing_step(draw, proof_steps::greedy_draft);
  CHECK(is_exact(step, models, 1));
  CHECK(step_distribution(step, models, {}, 1).mean_accepted == Rational(7, 10));
}

TEST_CASE("a coin of zero never accepts a sibling of target probability zero") {
  // sglang #35771.
  CHECK(decide_at(InjectedSource::kZeros, Purpose::sibling_coin, proof_steps::target_only, {0.0, 0.5, 0.5},
                  {1.0, 0.0, 0.0}, {0, 1}) == SiblingOutcome{1, 1});
}

TEST_CASE("a coin of one falls to the other tokens and where there are none to the last sibling") {
  const auto at_one = [](const DenseMasses<double>& p) {
    return decide_at(InjectedSource::kOnes, Purpose::sibling_coin, proof_steps::target_only, p, {}, {0, 1});
  };
  CHECK(at_one({0.25, 0.5, 0.25}) == SiblingOutcome{kNoSibling, 2});
  CHECK(at_one({0.5, 0.5, 0.0}) == SiblingOutcome{1, 1});
}
