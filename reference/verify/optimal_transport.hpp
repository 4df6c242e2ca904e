// The most that any exact verifier can accept of k drafts at one node: the optimal-transport bound (SpecTr, Sun et al.
// 2310.15141; the formula of Hu et al. 2502.18779, here from max-flow = min-cut).
//
//   alpha* = min over sets H of tokens of  p(H) + 1 - Pr(all drafts lie in H)
//
// The flow goes source -> tuple of drafts (capacity: its probability) -> any token in it -> sink (capacity: p). A cut
// that keeps the tokens H on the sink's side pays p(H) and every tuple that has a token outside H. For independent
// drafts, and for drafts without replacement, the best H is a prefix of the tokens in order of falling q/p, so V + 1
// sets are enough (proof for independent drafts: -s^k is concave, so at the minimum it may be replaced by its tangent,
// and what minimises the resulting linear function is such a prefix; without replacement: Hu et al.).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/token.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// The tokens in order of falling q/p, ties by id; those with p = q = 0 do not matter and are left out.
template <class Number>
std::vector<Token> tokens_by_falling_ratio(const DenseMasses<Number>& p, const DenseMasses<Number>& q) {
  std::vector<Token> order;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0 || q[i] > 0) order.push_back(static_cast<Token>(i));
  std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) {
    const auto i = static_cast<std::size_t>(a);
    const auto j = static_cast<std::size_t>(b);
    return q[i] * p[j] > q[j] * p[i];
  });
  return order;
}

// alpha* for k drafts drawn independently from q. p, q [V] sum to 1. Cost: that of the sort. The running sums go in the
// order of the ratios, which is total, so they too are the same everywhere.
template <class Number>
Number optimal_acceptance_with_replacement(const DenseMasses<Number>& p, const DenseMasses<Number>& q, std::size_t k) {
  Number best(k == 0 ? 0 : 1);  // H empty: 1 - Pr(there is no draft)
  Number target(0);
  Number proposal(0);
  for (const Token token : tokens_by_falling_ratio(p, q)) {
    target += p[static_cast<std::size_t>(token)];
    proposal += q[static_cast<std::size_t>(token)];
    Number all_within(1);
    for (std::size_t j = 0; j < k; ++j) all_within = all_within * proposal;
    best = std::min(best, Number(target + (Number(1) - all_within)));
  }
  return best;
}

// Pr(the next k drafts without replacement lie in `within`), given what is left of q. Once q is exhausted nothing is
// drafted any more. Cost: |within|^(k-1) V.
template <class Number>
Number all_drafts_within(const DenseMasses<Number>& undrafted, std::span<const Token> within, std::size_t k) {
  const Number total = total_of(undrafted);
  if (k == 0 || !(total > 0)) return Number(1);
  Number sum(0);
  for (const Token token : within) {
    const auto x = static_cast<std::size_t>(token);
    if (!(undrafted[x] > 0)) continue;
    const Number first = undrafted[x] / total;
    if (k == 1) {
      sum += first;
      continue;
    }
    DenseMasses<Number> left = undrafted;
    left[x] = Number(0);
    sum += first * all_drafts_within(left, within, k - 1);
  }
  return sum;
}

// alpha* for k drafts drawn from q without replacement (fewer where q's support has fewer tokens). For small
// vocabularies: cost V^(k+1).
template <class Number>
Number optimal_acceptance_without_replacement(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                              std::size_t k) {
  const std::vector<Token> order = tokens_by_falling_ratio(p, q);
  Number best(k == 0 ? 0 : 1);  // H empty: 1 - Pr(there is no draft)
  Number target(0);
  for (std::size_t n = 1; n <= order.size(); ++n) {
    target += p[static_cast<std::size_t>(order[n - 1])];
    const Number all_within = all_drafts_within(q, std::span<const Token>(order).first(n), k);
    best = std::min(best, Number(target + (Number(1) - all_within)));
  }
  return best;
}

}  // namespace draftproof
