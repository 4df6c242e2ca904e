// Verification of greedy drafting (Hu et al. 2502.18779): all siblings but the last are the k-1 most probable tokens
// under q (Top), the last is drawn from q' = q without Top, renormalised. Guarantee: distribution-exact, and optimal
// for such siblings: accepts with probability p(Top) + sum_{x not in Top} min(p(x), q'(x)).
//
//   accept x_k with probability min(1, p(x_k) / q'(x_k))
//   else  emit Y drawn from norm(max(p - q', 0));  Y in Top counts as accepted
//
// Top may be any set that does not depend on the draw of x_k. Where q has no mass outside Top, x_k cannot have been
// drawn and is one more deterministic sibling: q' is zero, so it is not tried, and Y ~ p may still hit it.
#pragma once

#include <cstdint>
#include <span>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/scaled_masses.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

// See sibling_outcome.hpp. Only the last sibling has a coin.
template <class Number, class Chance>
SiblingOutcome accept_sibling_greedy_draft(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                           std::span<const Token> siblings, std::span<const std::int32_t> nodes,
                                           std::uint32_t row, Chance& chance) {
  if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  DenseMasses<Number> sampled_from = q;
  for (const Token top : siblings.first(siblings.size() - 1)) sampled_from[static_cast<std::size_t>(top)] = Number(0);
  const Number total = siblings.size() == 1 ? Number(1) : total_of(sampled_from);
  if (total > 0) sampled_from = scaled(sampled_from, Number(Number(1) / total));
  const Token last = siblings.back();
  const auto x = static_cast<std::size_t>(last);
  if (chance.accept(p[x], sampled_from[x], static_cast<std::uint32_t>(nodes.back())))
    return {static_cast<std::int32_t>(siblings.size()) - 1, last};
  const DenseMasses<Number> residual = positive_difference(p, sampled_from);
  return descend_if_drafted(chance.draw(total_of(residual) > 0 ? residual : p, row, Purpose::residual), siblings);
}

}  // namespace draftproof
