// Traversal verification: a draft tree verified from the leaves up. Weng et al. 2505.12398. Guarantee:
// distribution-exact for siblings drawn without replacement (i.i.d. paths merged by first appearance included); on a
// chain it is block verification.
//
//   w(root) = 1,  w(vx) = min(1, w(v) p(x|v) / q(x|v))
//   take the first leaf of depth-first order:
//     the root: emit a token drawn from its current p
//     else accept with probability w(leaf): emit its path and a token drawn from its current p
//     else delete it (token t, parent v):
//       r = max(w(v) p(.|v) - q(.|v), 0),  S = sum r
//       w(v) <- S / (S + 1 - w(v)),  p(.|v) <- norm(r),  q(.|v) <- norm(q without t)
//
// The weight update is the one that makes the chain case block verification; w(v) <- min(1, S / sum of the remaining
// q), which a public implementation uses, is biased (tested). A parent whose children are all deleted is a leaf.
// Deleting a leaf touches its parent only, and what else hangs from that parent has not been looked at yet: so a stack
// along the current path holds all the state there is.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/block.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/scaled_masses.hpp"
#include "reference/verify/tree.hpp"

namespace draftproof {

template <class Number>
struct TraversalNode {
  std::int32_t node;
  Number weight;                       // w
  DenseMasses<Number> p, q;            // current distributions
  std::vector<std::int32_t> children;  // not deleted, in sampling order
  bool rejected_a_child = false;
};

// Rejects a node's first child: deletes it and updates the node's weight, p and q.
template <class Number>
void delete_first_child(TraversalNode<Number>& v, Token token) {
  v.children.erase(v.children.begin());
  v.rejected_a_child = true;
  DenseMasses<Number> residual = positive_difference(scaled(v.p, v.weight), v.q);
  const Number mass = total_of(residual);
  v.weight = block_acceptance(mass, v.weight);
  if (mass > 0) v.p = scaled(std::move(residual), Number(Number(1) / mass));
  v.q[static_cast<std::size_t>(token)] = Number(0);
  const Number undrafted = total_of(v.q);
  if (undrafted > 0) v.q = scaled(std::move(v.q), Number(Number(1) / undrafted));
}

// target, proposal: row(r) -> DenseMasses<Number>, rows as in draft_tree.hpp. The coin of a node has the row of the
// node.
template <class Target, class Proposal, class Chance>
TreeOutcome verify_traversal(const DraftTree& tree, const Target& target, const Proposal& proposal, Chance& chance) {
  using Number = typename std::remove_cvref_t<decltype(target.row(0))>::value_type;
  const auto visit = [&](std::int32_t node, const Number& weight) {
    const std::uint32_t row = DraftTree::row_after(node);
    const auto& p = target.row(row);  // first the target, as in verify_tree
    return TraversalNode<Number>{node, weight, p, proposal.row(row), tree.children(node), false};
  };
  std::vector<TraversalNode<Number>> stack{visit(kRootNode, Number(1))};
  for (;;) {
    TraversalNode<Number>& last = stack.back();
    if (!last.children.empty()) {
      const std::int32_t child = last.children.front();
      const auto x = static_cast<std::size_t>(tree.tokens[static_cast<std::size_t>(child)]);
      stack.push_back(visit(child, block_weight<Number>(last.weight, last.p[x], last.q[x])));
      continue;
    }
    if (last.node == kRootNode || chance.accept(last.weight, Number(1), static_cast<std::uint32_t>(last.node))) break;
    const Token deleted = tree.tokens[static_cast<std::size_t>(last.node)];
    stack.pop_back();
    delete_first_child(stack.back(), deleted);
  }
  TreeOutcome outcome{{}, kPaddingToken};
  for (std::size_t i = 1; i < stack.size(); ++i) outcome.path.push_back(stack[i].node);
  const TraversalNode<Number>& end = stack.back();
  outcome.last_token = chance.draw(end.p, DraftTree::row_after(end.node),
                                   end.rejected_a_child ? Purpose::residual : Purpose::target_sample);
  return outcome;
}

}  // namespace draftproof
