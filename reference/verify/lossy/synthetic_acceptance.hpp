// Synthetic acceptance: every draft is accepted at a given rate, whatever p and q. Engines have it to measure speed at
// a chosen acceptance length. Guarantee: LOSSY. One position emits from a q + (1 - a) p, at distance a TV(p, q);
// nothing that it writes is the target's text.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/lossy/distance.hpp"

namespace draftproof {

// draft [K], K >= 0; target rows 0..K; `rate` in [0, 1]. After a rejection, as after the last draft, the token is drawn
// from p at (target_sample, row). Error (usage): a rate outside [0, 1].
template <class Number, class Target, class Chance>
ChainOutcome verify_synthetic_acceptance(std::span<const Token> draft, Target& target, const Number& rate,
                                         Chance& chance) {
  if (!(rate >= 0 && rate <= 1))
    throw usage_error("synthetic acceptance", "the acceptance rate must be a number in [0, 1]");
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  std::uint32_t row = 0;
  while (row < draft_len && chance.accept(rate, Number(1), row)) ++row;
  return {row, chance.draw(target.masses(row), row, Purpose::target_sample)};
}

// Distance of one position's emitted token from p, where its draft was drawn from q.
template <class Number>
Number synthetic_acceptance_distance(const DenseMasses<Number>& p, const DenseMasses<Number>& q, const Number& rate) {
  return rate * total_variation_of(p, q);
}

}  // namespace draftproof
