// Deferred rejection, FLy's rule: Li et al. 2511.22972, as vLLM has it for sampled requests
// (rejection_sample_method=fly). A rejected draft stays where the target is unsure and the drafts after it go well.
// Guarantee: LOSSY.
//
//   a_i: coin i of the chain rule accepts x_i
//   a rejected x_i stays iff  the gate of its row is open (the target's entropy is at least a threshold),
//                             p(x_i) > 0,  and a_(i+1) .. a_(i+W) all hold; so i + W < K, i counted from 0
//   the first rejection that does not stay: emit a token drawn from norm(max(p - q, 0))
//
// One position moves mass from the residual to rejected drafts, which have no residual: its distance from p is
//   sum over x with p(x) > 0 of max(q(x) - p(x), 0) pi(x)
// where the gate is open, pi(x) the probability that the W drafts after x are accepted, and 0 where it is closed; so at
// most TV(p, q). The last W places of a draft are exact.
//
// With a greedy target p is one-hot, p(x) > 0 fails, and this is the chain rule; vLLM's path for greedy requests looks
// at raw logits there, which is another rule than this.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// The sum of -p log p over the `count` most probable tokens, in nats; they are not renormalised.
double entropy_of_most_probable(const DenseMasses<double>& p, std::size_t count);

// draft [K]; target rows 0..K, proposal rows 0..K-1; window W >= 1; gate(p) -> bool. Addresses as in verify_chain; a
// coin is thrown when it is first looked at.
template <class Target, class Proposal, class Gate, class Chance>
ChainOutcome verify_fly(std::span<const Token> draft, const Target& target, const Proposal& proposal,
                        std::uint32_t window, Gate gate, Chance& chance) {
  using Number = typename std::remove_cvref_t<decltype(target.row(0))>::value_type;
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  std::vector<std::optional<bool>> coins(draft_len);
  const auto accepted = [&](std::uint32_t row) {
    const auto x = static_cast<std::size_t>(draft[row]);
    if (!coins[row]) coins[row] = chance.accept(target.row(row)[x], proposal.row(row)[x], row);
    return *coins[row];
  };
  const auto stays = [&](std::uint32_t row) {
    const DenseMasses<Number>& p = target.row(row);
    if (!(std::uint64_t{row} + window < draft_len) || !(p[static_cast<std::size_t>(draft[row])] > 0) || !gate(p))
      return false;
    for (std::uint32_t next = row + 1; next <= row + window; ++next)
      if (!accepted(next)) return false;
    return true;
  };
  for (std::uint32_t row = 0; row < draft_len; ++row) {
    if (accepted(row) || stays(row)) continue;
    const DenseMasses<Number> residual = positive_difference(target.row(row), proposal.row(row));
    return {row, chance.draw(total_of(residual) > 0 ? residual : target.row(row), row, Purpose::residual)};
  }
  return {draft_len, chance.draw(target.masses(draft_len), draft_len, Purpose::target_sample)};
}

// Distance of one position's emitted token from p behind an open gate, where its draft was drawn from q; passes [V]:
// the probability that the window after each token is accepted.
template <class Number>
Number fly_distance(const DenseMasses<Number>& p, const DenseMasses<Number>& q, const DenseMasses<Number>& passes) {
  DenseMasses<Number> kept(p.size(), Number(0));
  for (std::size_t x = 0; x < p.size(); ++x)
    if (p[x] > 0) kept[x] = positive_part_of_difference(q[x], p[x]) * passes[x];
  return total_of(kept);
}

}  // namespace draftproof
