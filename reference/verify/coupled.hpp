// Coupled chain verification: draft and target race over the same exponential noise. Daliri, Musco, Suresh 2408.07978
// (drafter-invariant speculative decoding by a communication-free coupling).
//
//   draft token at position i    argmin_x E_i(x) / q_i(x)
//   target token at position i   argmin_x E_i(x) / p_i(x), emitted always; the draft is accepted iff it is this token
//
// E_i belongs to the absolute position i of the request, not to a step. So the emitted tokens are those of plain
// decoding that races with the same seed, token for token, whatever drafter, draft length or batch. Guarantees: that
// (bit-exact), and hence distribution-exact, for drafts made in any way at all. Where the draft is raced over the same
// noise, it is accepted with probability sum_x 1 / sum_y max(p(y)/p(x), q(y)/q(x)) >= (1 - TV) / (1 + TV).
//
// The target uses every position's noise once. Sharing it with the draft is sound only because no ratio test follows:
// never combine this draft with verify_chain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/verify/chain.hpp"

namespace draftproof {

// draft_len = K >= 0. `draft_token(row)` is asked in order and only for rows that are reached, so that drafts can be
// made ahead or on demand. `target`: masses(row), rows 0..K. `position`: the absolute position of row 0, the number of
// tokens the request has emitted so far.
template <class DraftToken, class Target, class Chance>
ChainOutcome verify_coupled(std::uint32_t draft_len, DraftToken draft_token, Target& target, std::uint32_t position,
                            Chance& chance) {
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    const Token drafted = draft_token(row);
    const Token token = chance.coupled_race(target.masses(row), position + row);
    if (token != drafted) return {row, token};
  }
  return {draft_len, chance.coupled_race(target.masses(draft_len), position + draft_len)};
}

// draft [K].
template <class Target, class Chance>
ChainOutcome verify_coupled(std::span<const Token> draft, Target& target, std::uint32_t position, Chance& chance) {
  return verify_coupled(
      static_cast<std::uint32_t>(draft.size()), [&](std::uint32_t row) { return draft[row]; }, target, position,
      chance);
}

// A draft chain of `draft_len` tokens by races over the noise of positions position, position + 1, ...
// `distribution(path)`: the draft distribution after `path` (as in draft/sampled_tree.hpp).
template <class Distribution, class Chance>
std::vector<Token> draw_coupled_chain(const Distribution& distribution, std::uint32_t draft_len, std::uint32_t position,
                                      Chance& chance) {
  std::vector<Token> draft;
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    const Token token = chance.coupled_race(distribution(std::span<const Token>(draft)), position + row);
    draft.push_back(token);
  }
  return draft;
}

}  // namespace draftproof
