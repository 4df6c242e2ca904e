// Rules as their papers state them that turn out to be rules of reference/verify under another name. Claims of
// `draftproof prove` hold each to the other (claims.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/draft_tree.hpp"
#include "reference/verify/scaled_masses.hpp"
#include "reference/verify/sibling_outcome.hpp"

namespace draftproof {

// Hierarchical speculative decoding: Zhou et al. 2601.05724, Algorithm 2 with capped branch resampling (equations 11,
// 16, 17, 20). r_t = product of p/q over the first t drafts, r*_t = r_t / max(1, r_1 .. r_t).
//   D_pq, D_qp after t drafts: sums of max(r*_t p - q, 0) and of max(q - r*_t p, 0)
//   h_K = min(r*_(K-1) p / q, 1),  h_t = D_pq / max(D_pq, D_qp) for t < K
//   t = K .. 1: the first that its coin passes stands; the token after it is drawn from norm(max(r*_t p - q, 0))
// That is block verification (reference/verify/block.hpp): r*_t is its weight p_t, and D_qp = D_pq + 1 - p_t.
template <class Number, class Chance>
ChainOutcome verify_hierarchical(std::span<const Token> draft, const DenseRows<Number>& target,
                                 const DenseRows<Number>& proposal, Chance& chance) {
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  std::vector<Number> capped{Number(1)};  // r*_t
  Number ratio(1);
  Number greatest(1);
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    ratio = ratio * target.probability(row, draft[row]) / proposal.probability(row, draft[row]);
    greatest = std::max(greatest, ratio);
    capped.push_back(Number(ratio / greatest));
  }
  const auto branch = [&](std::uint32_t t) { return scaled(target.row(t), capped[t]); };
  for (std::uint32_t t = draft_len; t > 0; --t) {
    Number p_over_q = capped[draft_len - 1] * target.probability(draft_len - 1, draft[draft_len - 1]);
    Number most = proposal.probability(draft_len - 1, draft[draft_len - 1]);
    if (t < draft_len) {
      p_over_q = total_of(positive_difference(branch(t), proposal.row(t)));
      most = std::max(p_over_q, total_of(positive_difference(proposal.row(t), branch(t))));
    }
    if (most > 0 ? !chance.accept(p_over_q, most, t - 1) : false) continue;
    if (t == draft_len) return {t, chance.draw(target.masses(t), t, Purpose::target_sample)};
    return {t, chance.draw(positive_difference(branch(t), proposal.row(t)), t, Purpose::residual)};
  }
  if (draft_len == 0) return {0, chance.draw(target.masses(0), 0, Purpose::target_sample)};
  return {0, chance.draw(positive_difference(target.row(0), proposal.row(0)), 0, Purpose::residual)};
}

// SpecHub: Sun et al. 2411.05289. With a the most probable token of q, the pair of siblings is (x, a) for a draw x
// other than a, and (a, x) with x a draw without a for the draw a.
template <class Number, class Chance>
void add_hub_children(DraftTree& tree, std::int32_t parent, const DenseMasses<Number>& q, Chance& chance) {
  const Token hub = most_probable_tokens(q, 1).front();
  const auto first_node = static_cast<std::uint32_t>(tree.size());
  const Token first = chance.draw(q, first_node, Purpose::draft_sample);
  tree.add(first, parent);
  DenseMasses<Number> rest = q;
  rest[static_cast<std::size_t>(hub)] = Number(0);
  if (first != hub)
    tree.add(hub, parent);
  else if (total_of(rest) > 0)
    tree.add(chance.draw(rest, first_node + 1, Purpose::draft_sample), parent);
}

// Its rule, in the order of the authors' code: x as the first draft, x as the second, then a. Q(x, a) = q(x) and
// Q(a, x) = q(a) q(x) / (1 - q(a)) are the probabilities of the pairs.
template <class Number, class Chance>
SiblingOutcome accept_sibling_hub(const DenseMasses<Number>& p, const DenseMasses<Number>& q,
                                  std::span<const Token> siblings, std::span<const std::int32_t> nodes,
                                  std::uint32_t row, Chance& chance) {
  if (siblings.empty()) return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  const auto hub = static_cast<std::size_t>(most_probable_tokens(q, 1).front());
  const bool hub_first = static_cast<std::size_t>(siblings[0]) == hub;
  DenseMasses<Number> left = p;           // of p, what earlier acceptances do not cover
  DenseMasses<Number> pairs[2] = {q, q};  // (x, a) and (a, x), by x
  pairs[0][hub] = pairs[1][hub] = Number(0);
  const Number others = total_of(pairs[0]);
  if (others > 0) pairs[1] = scaled(pairs[1], Number(q[hub] / others));
  for (std::size_t order = 0; order < 2; ++order) {
    const DenseMasses<Number> drafted = pairs[order];
    if (hub_first == (order == 1) && siblings.size() == 2) {
      const std::size_t place = order;  // of x among the siblings
      const auto x = static_cast<std::size_t>(siblings[place]);
      if (chance.accept(left[x], drafted[x], static_cast<std::uint32_t>(nodes[place])))
        return {static_cast<std::int32_t>(place), siblings[place]};
    }
    for (std::size_t x = 0; x < p.size(); ++x) {
      if (x == hub) continue;
      const Number taken = std::min(left[x], drafted[x]);
      left[x] = left[x] - taken;
      pairs[order][x] = drafted[x] - taken;
    }
  }
  for (const std::size_t order : {std::size_t{1}, std::size_t{0}}) {
    Number drafted = total_of(pairs[order]);
    if (order == 1 && siblings.size() == 1) drafted = q[hub];  // a is all that q has
    if (hub_first == (order == 1)) {
      const std::size_t place = 1 - order;
      if (chance.accept(left[hub], drafted, static_cast<std::uint32_t>(nodes[place])))
        return {static_cast<std::int32_t>(place), siblings[place]};
    }
    left[hub] = positive_part_of_difference(left[hub], drafted);
  }
  return {kNoSibling, chance.draw(left, row, Purpose::residual)};
}

}  // namespace draftproof
