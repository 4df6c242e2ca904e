// Coupled verification of a list of drafts: Rowan, Phan, Khisti 2506.05632 (Gumbel-max list sampling).
//
//   draft list j at position i   argmin_x E_i^j(x) / q_i(x), with noise of its own
//   target token at position i   argmin_x min_j E_i^j(x) / p_i(x), emitted always
//
// min_j E^j is exponential with rate K, so the race over it follows p. The drafts that agree with what was emitted stay
// in play; the step ends where none does. Guarantees: bit-exact to plain decoding that races over the same K noise
// vectors, for any drafts at all, and hence distribution-exact. One position is accepted with probability at least
// sum_x K / sum_y (max(p(y)/p(x), q(y)/q(x)) + (K - 1) p(y)/p(x)).
//
// Address of E_i^j: (index, row = i, step = j, Purpose::gumbel_noise). List 0 is the noise of verify_coupled, and K = 1
// is verify_coupled. Coupled noise has no step of its own (random/address.hpp), so that word is free to name the list.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reference/verify/draft_tree.hpp"
#include "reference/verify/tree.hpp"

namespace draftproof {

// `drafts`: distinct siblings, i.e. the K paths with equal prefixes merged (merge_paths of draft/sampled_tree.hpp).
// `target`: masses(row) by the rows of the tree. `position`: the absolute position of the context's next token.
// Chance: coupled_list_race(masses, position, num_lists).
template <class Target, class Chance>
TreeOutcome verify_coupled_list(const DraftTree& drafts, std::uint32_t num_lists, Target& target,
                                std::uint32_t position, Chance& chance) {
  std::vector<std::int32_t> accepted;
  std::int32_t node = kRootNode;
  for (;;) {
    const auto level = static_cast<std::uint32_t>(accepted.size());
    const Token token =
        chance.coupled_list_race(target.masses(DraftTree::row_after(node)), position + level, num_lists);
    std::int32_t matching = kRootNode;
    for (const std::int32_t child : drafts.children(node))
      if (matching == kRootNode && drafts.tokens[static_cast<std::size_t>(child)] == token) matching = child;
    if (matching == kRootNode) return {std::move(accepted), token};
    accepted.push_back(matching);
    node = matching;
  }
}

// The K draft paths [num_lists][draft_len]. `distribution(path)`: the draft distribution after `path`.
template <class Distribution, class Chance>
std::vector<std::vector<Token>> draw_coupled_lists(const Distribution& distribution, std::uint32_t num_lists,
                                                   std::uint32_t draft_len, std::uint32_t position, Chance& chance) {
  std::vector<std::vector<Token>> paths(num_lists);
  for (std::uint32_t list = 0; list < num_lists; ++list)
    for (std::uint32_t row = 0; row < draft_len; ++row) {
      const Token token = chance.coupled_race(distribution(std::span<const Token>(paths[list])), position + row, list);
      paths[list].push_back(token);
    }
  return paths;
}

}  // namespace draftproof
