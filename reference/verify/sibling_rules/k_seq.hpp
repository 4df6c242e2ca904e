// k-sequential selection (SpecTr, Sun et al. 2310.15141). Siblings drawn independently from q. Guarantee:
// distribution-exact for every valid rho.
//
//   for j = 1..k:  accept x_j with probability min(1, p(x_j) / (rho q(x_j)))
//   none accepted: emit Y drawn from norm(p - min(q, p / rho) p_acc / beta),
//                  beta = sum_x min(p / rho, q),  p_acc = 1 - (1 - beta)^k
//
// p_acc / beta = sum_{i<k} (1 - beta)^i is computed as that sum: nothing cancels, and beta = 0 (then Y ~ p) is no
// special case. rho is valid iff p_acc / beta <= rho, since only then is the residual non-negative; rho = k always is.
// The residual may hold drafted tokens: Y that a sibling holds counts as accepted, by the first that does.
// Acceptance without those hits is p_acc; with rho* it is at least 1 - (1 - 1/k)^k of the optimum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/scaled_masses.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

// min(q, p / rho): the mass with which one trial accepts each token.
template <class Number>
DenseMasses<Number> k_seq_accepted(const DenseMasses<Number>& p, const DenseMasses<Number>& q, const Number& rho) {
  DenseMasses<Number> accepted(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) accepted[i] = std::min(q[i], Number(p[i] / rho));
  return accepted;
}

// p_acc / beta: the expected number of trials. Rounding, or rows that are no distributions, may make beta more than 1.
template <class Number>
Number k_seq_trials(const Number& beta, std::size_t k) {
  Number trials(0);
  Number reached(1);
  for (std::size_t j = 0; j < k; ++j) {
    trials += reached;
    reached = reached * positive_part_of_difference(Number(1), beta);
  }
  return trials;
}

// rho*, the smallest valid rho, by bisection on [1, k] to within `width`. Rounded up: just below rho* the residual has
// negative entries, and clipping them is a silent bias.
template <class Number>
Number k_seq_rho(const DenseMasses<Number>& p, const DenseMasses<Number>& q, std::size_t k,
                 const Number& width = Number(Number(1) / Number(1 << 20))) {
  const auto valid = [&](const Number& rho) { return k_seq_trials(total_of(k_seq_accepted(p, q, rho)), k) <= rho; };
  Number low(1);
  if (k <= 1 || valid(low)) return low;
  Number high(static_cast<std::uint32_t>(k));
  while (high - low > width) {
    const Number middle = (low + high) / Number(2);
    (valid(middle) ? high : low) = middle;
  }
  return high;
}

// See sibling_outcome.hpp. rho: valid for k = siblings.size().
template <class Number, class Chance>
SiblingOutcome accept_sibling_k_seq(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                    std::span<const Token> siblings, std::span<const std::int32_t> nodes,
                                    std::uint32_t row, Chance& chance, const Number& rho) {
  if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  for (std::size_t j = 0; j < siblings.size(); ++j) {
    const auto x = static_cast<std::size_t>(siblings[j]);
    if (chance.accept(p[x], Number(rho * q[x]), static_cast<std::uint32_t>(nodes[j])))
      return {static_cast<std::int32_t>(j), siblings[j]};
  }
  const DenseMasses<Number> accepted = k_seq_accepted(p, q, rho);
  const Number trials = k_seq_trials(total_of(accepted), siblings.size());
  const DenseMasses<Number> residual = positive_difference(p, scaled(accepted, trials));
  return descend_if_drafted(chance.draw(total_of(residual) > 0 ? residual : p, row, Purpose::residual), siblings);
}

// The same with rho*.
template <class Number, class Chance>
SiblingOutcome accept_sibling_k_seq(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                    std::span<const Token> siblings, std::span<const std::int32_t> nodes,
                                    std::uint32_t row, Chance& chance) {
  const Number rho = k_seq_rho(p, q, siblings.size());
  return accept_sibling_k_seq(p, q, siblings, nodes, row, chance, rho);
}

}  // namespace draftproof
