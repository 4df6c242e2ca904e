// Decoding by argmax that lets drafts near the argmax stand: TensorRT-LLM's relaxed acceptance while the model thinks
// (relaxed_topk, relaxed_delta), and verifier_accept_k with accept_tolerance of speculators. Guarantee: LOSSY. No coin
// is thrown, so a draft near the argmax is emitted as often as it is drafted. (speculators names the accepted drafts
// and not the token behind a rejection; it is the argmax here, as in TensorRT-LLM.)
//
//   A(p): the argmax g of p, and the tokens among its k most probable that are near it
//         relaxed:   p(x) >= p(g) - delta
//         accept_k:  p(x) >= p(g) exp(-tolerance)
//   accept x iff x is in A(p);  first rejection, or after the last draft: emit g
//
// One position with a draft from q is at distance q(A without g) from decoding by argmax, and at the distance of
// near_best_distribution from p. Ties of p go to the lowest id. Exact for a greedy target, and where A is g alone: k =
// 1, delta = 0 or tolerance = 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// A(p), the argmax first: `count` >= 1 tokens at most, near(p of the token, p of the argmax) of each but the argmax.
template <class Number, class Near>
std::vector<Token> tokens_near_best(const DenseMasses<Number>& p, std::size_t count, Near near) {
  std::vector<Token> tokens = most_probable_tokens(p, count);
  const Number best = p[static_cast<std::size_t>(tokens.front())];
  const auto far = std::find_if(tokens.begin() + 1, tokens.end(), [&](Token token) {
    return !near(p[static_cast<std::size_t>(token)], best);  // they fall: all behind the first are far, too
  });
  tokens.erase(far, tokens.end());
  return tokens;
}

// draft [K]; target rows 0..K; near_best(p) -> A(p), the argmax first. The last token is the draw of a greedy row, at
// (target_sample, row).
template <class Target, class NearBest, class Chance>
ChainOutcome verify_near_best(std::span<const Token> draft, const Target& target, NearBest near_best, Chance& chance) {
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  for (std::uint32_t row = 0;; ++row) {
    const auto& p = target.row(row);
    const std::vector<Token> near = near_best(p);
    if (row < draft_len && std::ranges::find(near, draft[row]) != near.end()) continue;
    std::remove_cvref_t<decltype(p)> greedy(p.size());
    greedy[static_cast<std::size_t>(near.front())] = 1;
    return {row, chance.draw(greedy, row, Purpose::target_sample)};
  }
}

// The distribution [V] of the token emitted at one position, where its draft was drawn from q.
template <class Number>
DenseMasses<Number> near_best_distribution(const DenseMasses<Number>& q, std::span<const Token> near) {
  DenseMasses<Number> emitted(q.size(), Number(0));
  Number rejected(1);
  for (const Token token : near) {
    const auto x = static_cast<std::size_t>(token);
    emitted[x] = q[x];
    rejected = positive_part_of_difference(rejected, q[x]);
  }
  emitted[static_cast<std::size_t>(near.front())] += rejected;
  return emitted;
}

// Its distance from decoding by argmax.
template <class Number>
Number near_best_distance(const DenseMasses<Number>& q, std::span<const Token> near) {
  Number others(0);
  for (const Token token : near.subspan(1)) others += q[static_cast<std::size_t>(token)];
  return others;
}

// Is a request inside its thinking phase, as TensorRT-LLM tracks it between steps: from the token `begin` (-1: from the
// start) to the token `end` (-1: never)? A prompt that holds `begin` opens it; output tokens open and close it.
bool is_thinking(std::span<const Token> prompt, std::span<const Token> output, Token begin, Token end);

}  // namespace draftproof
