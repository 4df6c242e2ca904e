// Models whose drafts are accepted less often than another model's: of what that accepts, each draft is kept with a
// probability of its own, and the first that is not ends the draft. Conditional rates are multiplied by it.
#pragma once

#include <vector>

#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

// Number of the `accepted` drafts before the first whose random word is not below `keep_below` (word_threshold).
inline std::int32_t thinned(std::int32_t accepted, std::uint64_t keep_below, const AcceptanceState& state,
                            AcceptancePlace place, AcceptanceWords row) {
  RandomBlock words{};
  for (std::int32_t i = 0; i < accepted; ++i) {
    if (i % 4 == 0) words = acceptance_block(state.seed, row, place.output_len, static_cast<std::uint32_t>(i / 4));
    if (words.word[i % 4] >= keep_below) return i;
  }
  return accepted;
}

inline std::vector<double> thinned(std::vector<double> survival, double factor) {
  double product = 1.0;
  for (double& s : survival) s *= product *= factor;
  return survival;
}

}  // namespace draftproof
