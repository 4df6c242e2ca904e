// Rows of production as dense rows: what the multi-draft and block rules compute with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "reference/sampling/distribution.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// The probabilities [V] of a row, each the float of the contract as a double.
inline DenseMasses<double> dense_row(const Distribution& distribution) {
  const auto vocab_size = static_cast<std::size_t>(distribution.vocab_size());
  DenseMasses<double> masses;
  masses.reserve(vocab_size);
  std::vector<float> scratch(kTileTokens);
  for (std::size_t tile = 0; tile < distribution.tile_count(); ++tile) {
    const float* probabilities = distribution.tile_probabilities(tile, scratch.data());
    const std::size_t count = std::min<std::size_t>(kTileTokens, vocab_size - masses.size());
    masses.insert(masses.end(), probabilities, probabilities + count);
  }
  return masses;
}

}  // namespace draftproof
