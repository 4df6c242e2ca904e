// Target-only sampling: SGLang's tree rule with both thresholds at 1, and EAGLE's with q = 1. One coin a node walks
// down the siblings' target probabilities. Guarantee: distribution-exact for siblings of any distribution, since it is
// inverse-CDF sampling of p in the order "siblings first"; it accepts with probability p(siblings), whatever q was.
//
//   accept sibling j where  sum_{i<j} p(x_i) <= u < sum_{i<=j} p(x_i)
//   none:  emit a token drawn from p without the siblings
//
// A duplicate has no share of the coin: counting it twice, as SGLang does, is biased. u is in [0, 1), so a sibling of
// target probability 0 never stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

// See sibling_outcome.hpp. The proposal and the nodes' own coins are not used; the node's coin is the draw at
// (sibling_coin, row).
template <class Masses, class Proposal, class Chance>
SiblingOutcome accept_sibling_target_only(const Masses& p, const Proposal&, std::span<const Token> siblings,
                                          std::span<const std::int32_t>, std::uint32_t row, Chance& chance) {
  if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  using Number = typename Masses::value_type;
  Masses undrafted = p;
  DenseMasses<Number> shares(siblings.size() + 1, Number(0));  // of the siblings, then of all other tokens
  for (std::size_t j = 0; j < siblings.size(); ++j) shares[j] = taken_out(undrafted, siblings[j]);
  shares.back() = total_of(undrafted);
  const auto chosen = static_cast<std::size_t>(chance.draw(shares, row, Purpose::sibling_coin));
  if (chosen < siblings.size()) return {static_cast<std::int32_t>(chosen), siblings[chosen]};
  return {kNoSibling, chance.draw(undrafted, row, Purpose::residual)};
}

}  // namespace draftproof
