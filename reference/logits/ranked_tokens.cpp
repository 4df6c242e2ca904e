#include "reference/logits/ranked_tokens.hpp"

#include <algorithm>
#include <array>

namespace draftproof {

Ranked ranked_tokens(const LogitsDistribution& row) {
  Ranked tokens;
  std::array<float, kTileTokens> values, weights;
  for (std::size_t tile = 0; tile < row.tile_count(); ++tile) {
    const std::size_t begin = tile * kTileTokens;
    const std::size_t count = std::min<std::size_t>(kTileTokens, static_cast<std::size_t>(row.vocab_size()) - begin);
    const float* const x = row.logits_in(begin, count, values.data());
    row.weights_in(begin, count, weights.data());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t mass = row.row_mass(weights[i], tile);
      if (mass > 0) tokens.push_back({static_cast<Token>(begin + i), x[i], mass});
    }
  }
  std::sort(tokens.begin(), tokens.end(), [](const RankedToken& a, const RankedToken& b) {
    return a.value > b.value || (a.value == b.value && a.token < b.token);
  });
  return tokens;
}

std::uint64_t total_mass(const Ranked& tokens) {
  std::uint64_t total = 0;
  for (const RankedToken& t : tokens) total += t.mass;
  return total;
}

Unsigned128 weighted_steps(const Ranked& tokens) {
  Unsigned128 sum = 0;
  for (const RankedToken& t : tokens) sum += static_cast<Unsigned128>(t.mass) * steps_below(tokens, t);
  return sum;
}

}  // namespace draftproof
