// Typical acceptance, Medusa's rule: Cai et al. 2401.10774, section 3.3.1. Guarantee: LOSSY.
//
//   accept x at prefix h iff p(x|h) > min(epsilon, delta exp(-H(p(.|h))))
//   of all accepted paths take the longest, of equally long ones the most likely, then that of the lowest node
//   emit a token drawn from p after it
//
// Whether x stands does not depend on a coin, so it is emitted as often as it is drafted. One position with a draft
// from q emits, with A the typical set, q(x) [x in A] + q(outside A) p(x): the distance from p is q(A) TV(q given A,
// p). A deterministic draft inside A is at distance 1 - p(x); a greedy target is matched exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/draft_tree.hpp"
#include "reference/verify/lossy/distance.hpp"
#include "reference/verify/tree.hpp"

namespace draftproof {

// Medusa's names, posterior_threshold and posterior_alpha, are swapped in some of its own helpers: here they are named
// after the paper.
struct TypicalOptions {
  double epsilon = 0.09;  // hard threshold, in [0, 1]
  double delta = 0.3;     // factor of the entropy-dependent one, >= 0
};

// min(epsilon, delta exp(-H(p))) of a row of probabilities [V], in double from + - * / fma alone. Errors (usage): an
// option outside its range.
double typical_threshold(const DenseMasses<double>& p, const TypicalOptions& options);

// target: row(r) -> DenseMasses<Number>, rows as in draft_tree.hpp. threshold(p) -> Number: the least p(x) that is not
// enough; typical_threshold in production, a policy without entropy in exact proofs. A chain is the tree chain_shape.
template <class Target, class Threshold, class Chance>
TreeOutcome verify_typical(const DraftTree& tree, const Target& target, Threshold threshold, Chance& chance) {
  using Number = typename std::decay_t<decltype(target.row(0))>::value_type;
  struct Path {
    bool accepted = false;
    std::int32_t length = 0;
    Number likelihood{1};
    Number threshold{0};  // of the children; known where the node is accepted
  };
  std::vector<Path> paths(tree.tokens.size() + 1);  // that of a node at its row
  paths[0] = {true, 0, Number(1), threshold(target.row(0))};
  std::int32_t best = kRootNode;
  for (std::int32_t node = 0; node < tree.size(); ++node) {
    const std::uint32_t parent_row = DraftTree::row_after(tree.parents[static_cast<std::size_t>(node)]);
    const Path& parent = paths[parent_row];
    if (!parent.accepted) continue;
    const Number& p = target.row(parent_row)[static_cast<std::size_t>(tree.tokens[static_cast<std::size_t>(node)])];
    if (!(p > parent.threshold)) continue;
    const std::uint32_t row = DraftTree::row_after(node);
    paths[row] = {true, parent.length + 1, Number(parent.likelihood * p), threshold(target.row(row))};
    const Path& longest = paths[DraftTree::row_after(best)];
    if (paths[row].length > longest.length ||
        (paths[row].length == longest.length && paths[row].likelihood > longest.likelihood))
      best = node;
  }
  TreeOutcome outcome{{}, kPaddingToken};
  for (std::int32_t node = best; node != kRootNode; node = tree.parents[static_cast<std::size_t>(node)])
    outcome.path.insert(outcome.path.begin(), node);
  const std::uint32_t row = DraftTree::row_after(best);
  outcome.last_token = chance.draw(target.row(row), row, Purpose::target_sample);
  return outcome;
}

// The distribution [V] of the token emitted at one position, where its draft was drawn from q.
template <class Number>
DenseMasses<Number> typical_distribution(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                         const Number& threshold) {
  DenseMasses<Number> typical(p.size(), Number(0));
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > threshold) typical[i] = q[i];
  const Number outside = positive_part_of_difference(Number(1), total_of(typical));
  for (std::size_t i = 0; i < p.size(); ++i) typical[i] += outside * p[i];
  return typical;
}

// Its distance from p, q(A) TV(q given A, p): sum over A of max(q(x) - q(A) p(x), 0).
template <class Number>
Number typical_acceptance_distance(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                   const Number& threshold) {
  DenseMasses<Number> typical(p.size(), Number(0));
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > threshold) typical[i] = q[i];
  const Number drafted_inside = total_of(typical);
  DenseMasses<Number> fair(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) fair[i] = drafted_inside * p[i];
  return total_of(positive_difference(typical, fair));
}

}  // namespace draftproof
