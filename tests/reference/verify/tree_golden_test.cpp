// Expected numbers of accepted drafts of two levels, p = (1/2, 3/10, 1/5), q = (1/5, 3/10, 1/2) at every prefix: the
// golden table of the specification, enumerated there by another program.
#include <catch2/catch.hpp>
#include <functional>

#include "exactness/rational.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "reference/verify/greedy_multipath.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "reference/verify/sibling_rules/rrs.hpp"
#include "reference/verify/sibling_rules/rrsw.hpp"
#include "reference/verify/traversal.hpp"
#include "reference/verify/tree.hpp"

using namespace draftproof;

namespace {

using Chance = EnumeratingChance<Rational>;
using Rows = DenseRows<Rational>;
using Draw = std::function<DraftTree(Chance&)>;
using Verify = std::function<TreeOutcome(const DraftTree&, const Rows&, const Rows&, Chance&)>;

DenseMasses<Rational> tenths(int a, int b, int c) {
  return {Rational(a) / 10, Rational(b) / 10, Rational(c) / 10};
}
const DenseMasses<Rational> kTarget = tenths(5, 3, 2);
const DenseMasses<Rational> kDraft = tenths(2, 3, 5);
const auto kDraftDistribution = [](std::span<const Token>) { return kDraft; };

Rational mean_accepted(const Draw& draw, const Verify& verify) {
  Rational mean(0);
  Chance chance;
  do {
    const DraftTree tree = draw(chance);
    const auto rows = static_cast<std::size_t>(tree.size()) + 1;
    const Rows target{std::vector<DenseMasses<Rational>>(rows, kTarget)};
    const Rows proposal{std::vector<DenseMasses<Rational>>(rows, kDraft)};
    const TreeOutcome outcome = verify(tree, target, proposal, chance);
    CHECK(chance.reused() == 0);
    mean += chance.probability() * static_cast<int>(outcome.path.size());
  } while (chance.next());
  return mean;
}

const Draw kMergedPaths = [](Chance& chance) { return draw_merged_paths(kDraftDistribution, 2, 2, chance); };
const Draw kPathsWithRepeats = [](Chance& chance) {
  return draw_merged_paths(kDraftDistribution, 2, 2, chance, Duplicates::kept);
};
const Draw kBinaryTree = [](Chance& chance) {
  return draw_children_without_replacement(kDraftDistribution, branching_shape({2, 2}), chance);
};
const Draw kChain = [](Chance& chance) { return draw_chain(kDraftDistribution, 2, chance); };

template <class Rule>
Verify top_down(Rule rule) {
  return [rule](const DraftTree& tree, const Rows& target, const Rows& proposal, Chance& chance) {
    return verify_tree(tree, target, proposal, rule, chance);
  };
}
const Verify kWalkByRrs = top_down([](auto&&... arguments) { return accept_sibling_rrs(arguments...); });
const Verify kWalkByRrsw = top_down([](auto&&... arguments) { return accept_sibling_rrsw(arguments...); });
const Verify kTraversal = [](const DraftTree& tree, const Rows& target, const Rows& proposal, Chance& chance) {
  return verify_traversal(tree, target, proposal, chance);
};
const auto multipath = [](std::int32_t num_paths) -> Verify {
  return [num_paths](const DraftTree& tree, const Rows& target, const Rows& proposal, Chance& chance) {
    return verify_greedy_multipath(tree, num_paths, target, proposal, chance);
  };
};

}  // namespace

TEST_CASE("Top-down tree verification accepts as many drafts as the golden table says") {
  CHECK(mean_accepted(kPathsWithRepeats, kWalkByRrs) == Rational(6529) / 5000);
  CHECK(mean_accepted(kBinaryTree, kWalkByRrsw) == Rational(3731) / 2500);
}

TEST_CASE("Traversal verification accepts as many drafts as the golden table says") {
  CHECK(mean_accepted(kMergedPaths, kTraversal) == Rational(6799) / 5000);
  CHECK(mean_accepted(kBinaryTree, kTraversal) == Rational(3821) / 2500);
}

TEST_CASE("Greedy multi-path verification accepts as many drafts as the golden table says") {
  CHECK(mean_accepted(kMergedPaths, multipath(2)) == Rational(3877) / 2500);
}

TEST_CASE("On a chain traversal and greedy multi-path verification are block verification and RRS is the chain rule") {
  CHECK(mean_accepted(kChain, kTraversal) == Rational(5) / 4);
  CHECK(mean_accepted(kChain, multipath(1)) == Rational(5) / 4);
  CHECK(mean_accepted(kChain, kWalkByRrs) == Rational(119) / 100);
  CHECK(mean_accepted(kChain, kWalkByRrsw) == Rational(119) / 100);
}

TEST_CASE("A tree without nodes emits one token of the target") {
  const Draw nothing = [](Chance&) { return DraftTree{}; };
  CHECK(mean_accepted(nothing, kWalkByRrs) == 0);
  CHECK(mean_accepted(nothing, kTraversal) == 0);
  CHECK(mean_accepted(nothing, multipath(2)) == 0);
}
