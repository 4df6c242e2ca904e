// Where the keys and values of every token's path lie: its stream's committed context, its ancestors in the batch,
// itself; by position, in tiles of 16 positions.
//
// Attention goes through the tiles of a path in order and through the positions of a tile in order, wherever their
// slots are. So a token's bits are those of plain decoding with everything before it committed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/model/language_model.hpp"

namespace draftproof {

// A tile of a path: a whole block of the cache where the slots of its positions are that block's, in order; else a list
// of slots to be gathered.
struct PathTile {
  std::int32_t block = -1;
  std::int32_t gathered = -1;  // index of AttentionPaths::gathered()

  bool operator==(const PathTile&) const = default;
};

using TileSlots = std::array<std::int64_t, kKvBlockSlots>;

class AttentionPaths {
 public:
  // Builds the paths of all tokens of a batch that validate() has seen.
  void build(const ForwardBatch& batch);

  // Tiles of the path of token i, itself included: positions[i] + 1 of them are valid, from position 0 on.
  const std::vector<PathTile>& tiles(std::size_t token) const { return tiles_[token]; }
  // The slots of a gathered tile; those beyond the path's end are -1.
  const TileSlots& gathered(const PathTile& tile) const { return gathered_[static_cast<std::size_t>(tile.gathered)]; }

 private:
  void append_tile(std::size_t token, const TileSlots& slots, std::int64_t count);

  std::vector<std::vector<PathTile>> tiles_;
  std::vector<TileSlots> last_;  // the slots of each path's last tile
  std::vector<TileSlots> gathered_;
};

}  // namespace draftproof
