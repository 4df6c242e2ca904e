// Verification by a static ensemble: DIVERSED, 2604.07622; transformers' assistant_ensemble_weight. The chain rule
// against v = w p + (1 - w) q in place of p. Guarantee: LOSSY below w = 1. One position emits exactly v, at distance
// (1 - w) TV(p, q), and accepts its draft with probability 1 - w TV(p, q).
//
//   accept x with probability min(1, v(x) / q(x))
//   else emit a token drawn from norm(max(v - q, 0)) = norm(max(p - q, 0)): the weight cancels
//   after the last draft emit a token drawn from p, since there is no q
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "base/error.hpp"
#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/lossy/distance.hpp"

namespace draftproof {

// draft [K]; target rows 0..K, proposal rows 0..K-1; `weight` w in [0, 1]. Addresses as in verify_chain. Error (usage):
// a weight outside [0, 1].
template <class Number, class Target, class Proposal, class Chance>
ChainOutcome verify_ensemble(std::span<const Token> draft, const Target& target, const Proposal& proposal,
                             const Number& weight, Chance& chance) {
  if (!(weight >= 0 && weight <= 1))
    throw usage_error("static ensemble", "the weight of the target must be a number in [0, 1]");
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    const DenseMasses<Number>& p = target.row(row);
    const DenseMasses<Number>& q = proposal.row(row);
    const auto x = static_cast<std::size_t>(draft[row]);
    if (chance.accept(Number(weight * p[x] + (1 - weight) * q[x]), q[x], row)) continue;
    const DenseMasses<Number> residual = positive_difference(p, q);
    return {row, chance.draw(total_of(residual) > 0 ? residual : p, row, Purpose::residual)};
  }
  return {draft_len, chance.draw(target.masses(draft_len), draft_len, Purpose::target_sample)};
}

// Distance of one position's emitted token from p, where its draft was drawn from q.
template <class Number>
Number ensemble_distance(const DenseMasses<Number>& p, const DenseMasses<Number>& q, const Number& weight) {
  return (1 - weight) * total_variation_of(p, q);
}

}  // namespace draftproof
