// Inverse mass over tiles: one draw for every kind of integer masses, whoever holds the tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/random/uniform.hpp"

namespace draftproof {

struct TilePlace {
  std::size_t tile;
  std::uint64_t before;  // mass of the tile's tokens before the drawn one, at the most: it is the first to exceed this
};

// The block's high half picks a tile by the tiles' masses in the scale of the row, its low half a place in the tile's
// own. `total` is the sum of in_row over all tiles, above 0.
template <class InRow, class OfTile>
TilePlace place_of_draw(const RandomBlock& block, std::uint64_t total, const InRow& in_row, const OfTile& of_tile) {
  std::uint64_t left = multiply_high(high_half(block), total);
  std::size_t tile = 0;
  for (std::uint64_t mass = in_row(tile); left >= mass; mass = in_row(tile)) {
    left -= mass;
    ++tile;
  }
  return {tile, multiply_high(low_half(block), of_tile(tile))};
}

}  // namespace draftproof
