// Verification at one node of a draft tree: which of its drafted children ("siblings") stands, or what is emitted
// instead. Each rule is a file of sibling_rules/ and has this form:
//
//   SiblingOutcome accept_sibling_<rule>(p, q, siblings, nodes, row, chance)
//
//   p, q      target and proposal distribution [V] at the node's prefix: probabilities, summing to 1
//   siblings  drafted tokens [k], k >= 0, in the order in which they were sampled
//   nodes     their node indices [k]: sibling j's acceptance coin has the address (accept, row nodes[j])
//   row       the prefix row of the node, DraftTree::row_after: recovered tokens are drawn at (residual, row), draws
//             from p at (target_sample, row)
//
// With no sibling a rule draws from p: the bonus token. Rules differ in what they assume of the siblings' distribution;
// a rule for another distribution than the drafter used is biased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

struct SiblingOutcome {
  std::int32_t accepted;  // index among the siblings: descend there; -1: none, `token` was drawn at this node
  Token token;            // the accepted sibling's token, or the recovered or bonus token

  friend bool operator==(const SiblingOutcome&, const SiblingOutcome&) = default;
};

inline constexpr std::int32_t kNoSibling = -1;

// The outcome of a token that was drawn at the node and may happen to be a drafted one: then the first sibling that
// holds it is accepted. Which one of several duplicates is descended into cannot change the distribution, since the
// choice looks at the siblings' tokens only.
inline SiblingOutcome descend_if_drafted(Token token, std::span<const Token> siblings) {
  for (std::size_t j = 0; j < siblings.size(); ++j)
    if (siblings[j] == token) return {static_cast<std::int32_t>(j), token};
  return {kNoSibling, token};
}

// Positions of the siblings that do not repeat an earlier one. The first appearances of independent draws from q are
// draws without replacement from q.
inline std::vector<std::int32_t> distinct_by_first_appearance(std::span<const Token> siblings) {
  std::vector<std::int32_t> positions;
  for (std::size_t j = 0; j < siblings.size(); ++j)
    if (descend_if_drafted(siblings[j], siblings.first(j)).accepted == kNoSibling)
      positions.push_back(static_cast<std::int32_t>(j));
  return positions;
}

}  // namespace draftproof
