// Verification of a draft tree from the root down: at every node one of the rules of sibling_rules/ decides which child
// stands; the walk descends there, or ends with the token that the rule drew. Guarantee: that of the rule, because each
// node's siblings are judged by the distributions at its own prefix alone (Miao et al. 2305.09781, Algorithm 2).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/verify/draft_tree.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

struct TreeOutcome {
  std::vector<std::int32_t> path;  // accepted nodes, from the root down; its length is tau
  Token last_token;                // recovered or bonus token
};

// The tokens that a step emits.
inline std::vector<Token> emitted_tokens(const DraftTree& tree, const TreeOutcome& outcome) {
  std::vector<Token> tokens;
  for (const std::int32_t node : outcome.path) tokens.push_back(tree.tokens[static_cast<std::size_t>(node)]);
  tokens.push_back(outcome.last_token);
  return tokens;
}

// tree: a DraftTree, or anything with its children(node) and tokens. target, proposal: row(r) -> DenseMasses, rows as
// in draft_tree.hpp. rule(p, q, siblings, nodes, row, chance).
template <class Tree, class Target, class Proposal, class Rule, class Chance>
TreeOutcome verify_tree(Tree& tree, const Target& target, const Proposal& proposal, Rule rule, Chance& chance) {
  TreeOutcome outcome{{}, kPaddingToken};
  for (std::int32_t node = kRootNode;;) {
    const std::vector<std::int32_t> nodes = tree.children(node);
    std::vector<Token> siblings;
    for (const std::int32_t child : nodes) siblings.push_back(tree.tokens[static_cast<std::size_t>(child)]);
    const std::uint32_t row = DraftTree::row_after(node);
    const auto& p = target.row(row);  // first the target: the order of arguments would be the compiler's
    const auto& q = proposal.row(row);
    const SiblingOutcome sibling = rule(p, q, siblings, nodes, row, chance);
    if (sibling.accepted == kNoSibling) {
      outcome.last_token = sibling.token;
      return outcome;
    }
    node = nodes[static_cast<std::size_t>(sibling.accepted)];
    outcome.path.push_back(node);
  }
}

}  // namespace draftproof
