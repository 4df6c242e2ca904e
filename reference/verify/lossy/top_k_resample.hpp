// Chain rejection with a truncated residual: the recovered token is drawn from max(p - q, 0) over the k most probable
// tokens of p only. A kernel that keeps k candidates a row can do no better. Guarantee: LOSSY, at one position by
//
//   TV(k) = sum of max(p(x) - q(x), 0) over the x outside the top k of p
//
// since just that mass moves from outside to inside. It is 0 for k = V, and for one-hot drafts about the tail mass of
// p. Where the residual lies wholly outside, the token is drawn from the top k of p, and the formula holds too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// `masses` where p ranks among its k most probable (ties: lowest id), 0 elsewhere.
template <class Number>
DenseMasses<Number> within_top_k(const DenseMasses<Number>& masses, const DenseMasses<Number>& p, std::size_t k) {
  DenseMasses<Number> kept(masses.size(), Number(0));
  for (const Token token : most_probable_tokens(p, k))
    kept[static_cast<std::size_t>(token)] = masses[static_cast<std::size_t>(token)];
  return kept;
}

// draft [K]; target rows 0..K, proposal rows 0..K-1. Addresses as in verify_chain. Error (usage): k < 1.
template <class Target, class Proposal, class Chance>
ChainOutcome verify_top_k_resample(std::span<const Token> draft, const Target& target, const Proposal& proposal,
                                   std::size_t k, Chance& chance) {
  using Number = typename std::remove_cvref_t<decltype(target.row(0))>::value_type;
  if (k < 1) throw usage_error("top-k resample", "k is 0; expected 1 or more");
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    const DenseMasses<Number>& p = target.row(row);
    const DenseMasses<Number>& q = proposal.row(row);
    const auto x = static_cast<std::size_t>(draft[row]);
    if (chance.accept(p[x], q[x], row)) continue;
    DenseMasses<Number> residual = within_top_k(positive_difference(p, q), p, k);
    if (!(total_of(residual) > 0)) residual = within_top_k(p, p, k);
    return {row, chance.draw(residual, row, Purpose::residual)};
  }
  return {draft_len, chance.draw(target.masses(draft_len), draft_len, Purpose::target_sample)};
}

// Distance of one position's emitted token from p, where its draft was drawn from q.
template <class Number>
Number top_k_resample_distance(const DenseMasses<Number>& p, const DenseMasses<Number>& q, std::size_t k) {
  DenseMasses<Number> residual = positive_difference(p, q);
  for (const Token token : most_probable_tokens(p, k)) residual[static_cast<std::size_t>(token)] = Number(0);
  return total_of(residual);
}

// The distance on three kinds of rows of 1024 tokens: peaked (p_i ~ 2^-i), flat, Zipf (p_i ~ 1 / (i + 1)).
struct TopKResampleRow {
  std::string row;
  std::size_t k;
  double one_hot_draft;  // TV, drafts are the most probable token
  double warm_draft;     // TV, drafts are drawn from p at temperature 2, q ~ sqrt(p)
};
std::vector<TopKResampleRow> top_k_resample_table();

}  // namespace draftproof
