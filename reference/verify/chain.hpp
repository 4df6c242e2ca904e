// Chain verification by rejection sampling: Leviathan, Kalman, Matias 2211.17192 (Algorithm 1) and Chen et al.
// 2302.01318 (Algorithm 2). Guarantee: distribution-exact. The emitted tokens, completed by draws from the target,
// follow the target.
//
//   for i = 1..K:  accept draft x_i with probability min(1, p_i(x_i) / q_i(x_i))
//   first rejection at i:  emit the recovered token, drawn from the residual norm(max(p_i - q_i, 0))
//   no rejection:          emit the bonus token, drawn from p_{K+1}
//
// Written once, over
//   Target    probability(row, token) -> Number;  masses(row)
//   Proposal  probability(row, token) -> Number
//   residual_masses(target, proposal, row), found by argument-dependent lookup
//   Chance    verify/chance.hpp
// A greedy row is a target that is one-hot at its argmax; a draft without probabilities is a one-hot proposal. Neither
// needs a line here.
#pragma once

#include <cstdint>
#include <span>

#include "base/token.hpp"
#include "reference/random/address.hpp"

namespace draftproof {

struct ChainOutcome {
  std::uint32_t num_accepted;  // tau
  Token last_token;            // recovered (num_accepted < K) or bonus token
};

// draft [K], K >= 0; target rows 0..K; proposal rows 0..K-1. Rows after the first rejection are not touched.
template <class Target, class Proposal, class Chance>
ChainOutcome verify_chain(std::span<const Token> draft, Target& target, Proposal& proposal, Chance& chance) {
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    const Token token = draft[row];
    const auto& p = target.probability(row, token);  // first the target: the order of arguments would be the compiler's
    const auto& q = proposal.probability(row, token);
    if (chance.accept(p, q, row)) continue;
    return {row, chance.draw(residual_masses(target, proposal, row), row, Purpose::residual)};
  }
  return {draft_len, chance.draw(target.masses(draft_len), draft_len, Purpose::target_sample)};
}

}  // namespace draftproof
