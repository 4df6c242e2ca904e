// Drawing from unnormalised masses that are held as doubles: rules that compute whole rows (multi-draft, block) draw by
// them just as Distribution's masses are drawn by (distribution.hpp): RNE(x 2^62) each, tiles, the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/sampling/distribution.hpp"

namespace draftproof {

class DenseDraw {
 public:
  // masses [V], V >= 1, each in [0, 2), their sum below 4. Not copied.
  explicit DenseDraw(std::span<const double> masses) : masses_(masses) {}

  // Error (internal): all masses are zero; callers have a rule for that case.
  Token draw(const RandomBlock& block) const;
  void for_each_log_weight(const LogWeightSink& sink) const;

  std::vector<std::uint64_t> tile_sums() const;
  Token token_at(std::size_t tile, std::uint64_t before) const;  // of a tile, where its sum first exceeds `before`

 private:
  std::span<const double> masses_;
};

}  // namespace draftproof
