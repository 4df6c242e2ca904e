// Sampler match: draw the target's own token Y at every row and accept while Y equals the draft. Guarantee:
// distribution-exact for drafts of any distribution whatever, since what is emitted is what the target drew; accepts
// with probability sum_x p(x) q(x). In a tree this is naive sampling (sibling_rules/naive_sampling.hpp). For one-hot
// proposals its distribution is the chain rule's.
#pragma once

#include <cstdint>
#include <span>

#include "reference/random/address.hpp"
#include "reference/verify/chain.hpp"

namespace draftproof {

// draft [K], K >= 0; target rows 0..K, of which those after the first mismatch are not touched. Every draw has the
// address (target_sample, row).
template <class Target, class Chance>
ChainOutcome verify_sampler_match(std::span<const Token> draft, Target& target, Chance& chance) {
  for (std::uint32_t row = 0;; ++row) {
    const Token token = chance.draw(target.masses(row), row, Purpose::target_sample);
    if (row == draft.size() || token != draft[row]) return {row, token};
  }
}

}  // namespace draftproof
