// Shared by the bugs of structured output: steps whose rows are masked by the toy grammar, rightly or not.
#pragma once

#include <functional>
#include <vector>

#include "exactness/bugs/families.hpp"
#include "exactness/bugs/hunting.hpp"
#include "exactness/proof/grammar_steps.hpp"

namespace draftproof {

using proof_steps::RowMask;

// The masks of a step after `prefix` with at most draft_len drafts, by some engine.
using EngineMasks =
    std::function<RowMask(const ToyGrammar& grammar, const TokenString& prefix, std::int32_t draft_len)>;

inline EngineMasks sound_masks() {
  return [](const ToyGrammar& grammar, const TokenString& prefix, std::int32_t) {
    return proof_steps::masks_after(grammar, prefix);
  };
}

// E: a chain of two drafts from bare rows, judged by rows with the engine's masks; what comes out against the target
// masked at every position.
Finding find_wrong_masks(const EngineMasks& masks);

}  // namespace draftproof
