#include "engine/transformer/int8_rows.hpp"

namespace draftproof {

void Int8Rows::resize(int rows, std::int64_t columns) {
  const std::int64_t blocks = columns / kBlockColumns;
  if (rows == rows_ && blocks == blocks_) return;
  rows_ = rows;
  blocks_ = blocks;
  cells_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(blocks));
  tiles_.clear();
  tile_of_row_.clear();
  const int num_tiles = (rows + kTileRows - 1) / kTileRows;
  Int8Block* cells = cells_.data();
  for (int t = 0, first = 0; t < num_tiles; ++t) {
    const int of_tile = (rows - first) / (num_tiles - t);
    tiles_.push_back({first, of_tile, cells});
    tile_of_row_.insert(tile_of_row_.end(), static_cast<std::size_t>(of_tile), static_cast<std::size_t>(t));
    cells += static_cast<std::size_t>(of_tile) * static_cast<std::size_t>(blocks);
    first += of_tile;
  }
}

}  // namespace draftproof
