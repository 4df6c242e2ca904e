// Recursive rejection sampling with replacement (RRS): SpecInfer's multi-step speculative sampling, Miao et al.
// 2305.09781. Siblings drawn independently from q. Guarantee: distribution-exact.
//
//   p_0 = p;  for j = 1..k:  accept x_j with probability min(1, p_{j-1}(x_j) / q(x_j))
//                            else  p_j = norm(max(p_{j-1} - q, 0))
//   none accepted:  emit a token drawn from p_k
//
// Duplicates among the siblings are trials of their own: skipping them is biased. A rejected token has no mass in any
// later p_j, so the recovered token is never a drafted one. For one sibling this is the chain rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/scaled_masses.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

// See sibling_outcome.hpp. p_j is held as remaining = total p_j, unnormalised: no division, and so nothing that a tiny
// total could blow up. An empty residual, which only rounding reaches, leaves p_j as it was.
template <class Number, class Chance>
SiblingOutcome accept_sibling_rrs(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                  std::span<const Token> siblings, std::span<const std::int32_t> nodes,
                                  std::uint32_t row, Chance& chance) {
  if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  DenseMasses<Number> remaining = p;
  Number total(1);
  for (std::size_t j = 0; j < siblings.size(); ++j) {
    const auto x = static_cast<std::size_t>(siblings[j]);
    const DenseMasses<Number> proposed = scaled(q, total);
    if (chance.accept(remaining[x], proposed[x], static_cast<std::uint32_t>(nodes[j])))
      return {static_cast<std::int32_t>(j), siblings[j]};
    DenseMasses<Number> residual = positive_difference(remaining, proposed);
    const Number residual_total = total_of(residual);
    if (!(residual_total > 0)) continue;
    remaining = std::move(residual);
    total = residual_total;
  }
  return {kNoSibling, chance.draw(remaining, row, Purpose::residual)};
}

}  // namespace draftproof
