// Recursive rejection sampling without replacement (RRSw): Jeon et al. 2402.14160 (RSD), Chen et al. 2402.12374
// (Sequoia), Yang et al. 2401.06706 (MCSD). Siblings drawn one after the other from q without replacement, in that
// order. Guarantee: distribution-exact. With k = |support of p| siblings that cover it, acceptance is certain.
//
//   p_0 = p, q_0 = q;  for j = 1..k:  accept x_j with probability min(1, p_{j-1}(x_j) / q_{j-1}(x_j))
//                                     else  p_j = norm(max(p_{j-1} - q_{j-1}, 0)),  q_j = norm(q_{j-1} without x_j)
//   none accepted:  emit a token drawn from p_k
//
// A sibling that q_{j-1} cannot produce is passed over: it is not a trial. Duplicates are of this kind, so independent
// siblings may be given as they are: their first appearances are draws without replacement. So is every sibling after
// the support of q is exhausted; a drafter that tells the truth has none.
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

// See sibling_outcome.hpp. p_j and q_j are held unnormalised with their totals; only the totals are divided.
template <class Number, class Chance>
SiblingOutcome accept_sibling_rrsw(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                   std::span<const Token> siblings, std::span<const std::int32_t> nodes,
                                   std::uint32_t row, Chance& chance) {
  if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  DenseMasses<Number> remaining = p;
  DenseMasses<Number> undrafted = q;
  Number total(1);
  Number undrafted_total(1);
  for (std::size_t j = 0; j < siblings.size() && undrafted_total > 0; ++j) {
    const auto x = static_cast<std::size_t>(siblings[j]);
    if (!(undrafted[x] > 0)) continue;
    const DenseMasses<Number> proposed = scaled(undrafted, Number(total / undrafted_total));
    if (chance.accept(remaining[x], proposed[x], static_cast<std::uint32_t>(nodes[j])))
      return {static_cast<std::int32_t>(j), siblings[j]};
    undrafted[x] = Number(0);
    undrafted_total = total_of(undrafted);
    DenseMasses<Number> residual = positive_difference(remaining, proposed);
    const Number residual_total = total_of(residual);
    if (!(residual_total > 0)) continue;
    remaining = std::move(residual);
    total = residual_total;
  }
  return {kNoSibling, chance.draw(remaining, row, Purpose::residual)};
}

}  // namespace draftproof
