// Chains that end where the draft model is unsure of a token. What matters to a verifier is what was known when it was
// decided whether a token stays: before it was drawn, anything; afterwards, its own value.
#pragma once

#include <cstdint>
#include <functional>

#include "exactness/bugs/algorithm/family.hpp"

namespace draftproof {

// The probability that is compared with p_min, and where the chain ends.
enum class ChainEnd : std::uint8_t {
  before_the_draw,   // at a row whose largest q is below p_min
  before_the_token,  // the drawn token's q is below p_min: it is dropped, and all behind it
  behind_the_token,  // the same, but it stays as the last
};

// Drafting of at most draft_len tokens with p_min = 2/5, and verification of what is left.
EnumeratedStep ended_chain_step(ChainEnd end, EnumeratedVerify verify);

}  // namespace draftproof
