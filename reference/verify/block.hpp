// Block verification: Sun, Mendlovic, Leviathan, Aharoni, Ro, Beirami, Suresh 2403.10444. The drafts of a chain are
// judged jointly. Guarantee: distribution-exact, and no verifier of one chain accepts more on average: a path v is
// accepted with probability A(v) = min(A(parent) p, q(v)), the most that any can.
//
//   p_0 = 1,  p_i = min(p_{i-1} p(x_i | x^{i-1}) / q(x_i | x^{i-1}), 1)
//   r_i = max(p_i p(. | x^i) - q(. | x^i), 0),  S_i = sum of r_i
//   h_i = S_i / (S_i + 1 - p_i) for i < K,  h_K = p_K
//   u_1 .. u_K independent;  tau = the last i with u_i < h_i, 0 if there is none
//   tau < K:  emit the recovered token, drawn from norm(r_tau);  tau = K:  emit the bonus token, drawn from p_{K+1}
//
// A failed coin does not end the scan, so every coin is drawn, used or not. Nothing of it may come back: coins and
// draws are addressed by (row, step), and a shipped engine that keyed them by position alone coupled consecutive steps.
// For K = 1, for one-hot proposals and for one-hot targets the distribution is the chain rule's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/scaled_masses.hpp"

namespace draftproof {

// p_i from p_{i-1} and the probabilities of x_i. Once 0 it stays 0; q = 0 < p, which a drafter that tells the truth
// never gives, is an infinite ratio.
template <class Number>
Number block_weight(const Number& weight, const Number& p, const Number& q) {
  const Number mass = weight * p;
  if (!(mass > 0)) return Number(0);
  return mass >= q ? Number(1) : Number(mass / q);
}

// h_i, i < K, from S_i and p_i. 0/0 is p_i = 1 with an empty residual: p = q there. Then x^i is accepted for certain,
// for nothing could be emitted in its place.
template <class Number>
Number block_acceptance(const Number& residual_total, const Number& weight) {
  const Number total = residual_total + (Number(1) - weight);
  return total > 0 ? Number(residual_total / total) : Number(1);
}

// draft [K], K >= 0, the request's own drafts: what follows the first kPaddingToken is not looked at, since h_K = p_K
// holds at the last valid one. target rows 0..K, proposal rows 0..K-1, as DenseRows.
template <class Target, class Proposal, class Chance>
ChainOutcome verify_block(std::span<const Token> draft, Target& target, Proposal& proposal, Chance& chance) {
  using Number = std::remove_cvref_t<decltype(target.probability(0, Token{}))>;
  const auto draft_len = static_cast<std::uint32_t>(std::ranges::find(draft, kPaddingToken) - draft.begin());
  const auto residual = [&](std::uint32_t row, const Number& weight) {
    return positive_difference(scaled(target.masses(row), weight), proposal.masses(row));
  };
  std::uint32_t num_accepted = 0;
  Number weight(1);
  Number accepted_weight(1);
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    const std::uint32_t i = row + 1;
    weight = block_weight<Number>(weight, target.probability(row, draft[row]), proposal.probability(row, draft[row]));
    const Number acceptance = i == draft_len ? weight : block_acceptance(total_of(residual(i, weight)), weight);
    if (!chance.accept(acceptance, Number(1), row)) continue;
    num_accepted = i;
    accepted_weight = weight;
  }
  if (num_accepted == draft_len)
    return {draft_len, chance.draw(target.masses(draft_len), draft_len, Purpose::target_sample)};
  // Dense where it can be; rows on several devices stay there (shard/sharded_verify.hpp).
  using Residual = decltype(residual(num_accepted, accepted_weight));
  using Dense = DenseMasses<Number>;
  const std::conditional_t<std::is_convertible_v<Residual, Dense>, Dense, Residual> recovered =
      residual(num_accepted, accepted_weight);
  return {num_accepted, chance.draw(total_of(recovered) > 0 ? recovered : target.masses(num_accepted), num_accepted,
                                    Purpose::residual)};
}

}  // namespace draftproof
