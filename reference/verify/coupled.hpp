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

#include "reference/verify/chain.hpp"

namespace draftproof {

// draft [K], K >= 0. target: masses(row), rows 0..K. position: the absolute position of row 0, the number of tokens
// that the request has emitted so far.
template <class Target, class Chance>
ChainOutcome verify_coupled(std::span<const Token> draft, Target& target, std::uint32_t position, Chance& chance) {
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    const Token token = chance.coupled_race(target.masses(row), position + row);
    if (token != draft[row]) return {row, token};
  }
  return {draft_len, chance.coupled_race(target.masses(draft_len), position + draft_len)};
}

}  // namespace draftproof
