#include "reference/verify/sibling_rules/greedy_draft.hpp"

#include <catch2/catch.hpp>

#include "tests/reference/verify/sibling_rules/rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

// p(Top) + sum over x outside Top of min(p(x), q'(x)), from the definition. Where q ends inside Top there is no q'.
Rational greedy_draft_acceptance(const Masses& p, const Masses& q, std::int32_t k) {
  Masses rest = q;
  Rational sum(0);
  for (std::int32_t j = 0; j + 1 < k && total_of(rest) > 0; ++j) {
    const auto top = static_cast<std::size_t>(std::max_element(rest.begin(), rest.end()) - rest.begin());
    sum += p[top];
    rest[top] = 0;
  }
  if (!(total_of(rest) > 0)) return sum;
  return sum + overlap(p, normalised(rest));
}

}  // namespace

TEST_CASE("verification of greedy drafts is exact on every kind of model") {
  check_exact(Drafting::greedy, 3, kGreedyDraft);
}

TEST_CASE("verification of greedy drafts follows the target with doubles and Philox") {
  check_production(Drafting::greedy, kGreedyDraft);
}

TEST_CASE("verification of one greedy draft is the chain rule") {
  check_chain_rule(kGreedyDraft);
}

TEST_CASE("verification of greedy drafts accepts by its formula") {
  check_acceptance(4, 4, Drafting::greedy, kGreedyDraft, greedy_draft_acceptance, {{7, 10}, {9, 10}});
}

TEST_CASE("a residual hit in the top set counts as accepted") {
  // q' = (2/5, 3/5, 0) for the golden pair with Top = {2}: rejecting 1 leaves 1/10 on 0 and 1/5 on 2.
  const std::vector<Token> siblings{2, 1};
  std::map<std::int32_t, Rational> distribution;
  EnumeratingChance<Rational> chance;
  do {
    distribution[decide(golden_p(), golden_q(), Siblings(siblings), 0, chance, kGreedyDraft).accepted] +=
        chance.probability();
  } while (chance.next());
  CHECK(distribution[1] == Rational(1, 2));
  CHECK(distribution[0] == Rational(1, 2) * Rational(2, 3));
  CHECK(distribution[kNoSibling] == Rational(1, 2) * Rational(1, 3));
}

TEST_CASE("a last sibling without mass outside the top set is one more fixed sibling") {
  // q ends inside Top: naive sampling over the two.
  const Masses q{0, 0, 1};
  const std::vector<Token> siblings{2, 0};
  Masses distribution(3);
  Rational acceptance(0);
  EnumeratingChance<Rational> chance;
  do {
    const SiblingOutcome outcome = decide(golden_p(), q, Siblings(siblings), 0, chance, kGreedyDraft);
    distribution[static_cast<std::size_t>(outcome.token)] += chance.probability();
    if (outcome.accepted != kNoSibling) acceptance += chance.probability();
  } while (chance.next());
  CHECK(distribution == golden_p());
  CHECK(acceptance == golden_p()[0] + golden_p()[2]);
}

TEST_CASE("other rules are wrong for greedy drafts") {
  for (const ControlCount& count :
       {count_exact(4, 2, Drafting::greedy, kRrs), count_exact(4, 2, Drafting::greedy, kRrsw),
        count_exact(4, 2, Drafting::with_replacement, kGreedyDraft)}) {
    CHECK(count.exact < count.of / 2);
    CHECK(count.largest > Rational(1, 100));
  }
}
