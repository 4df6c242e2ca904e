#include "reference/model/transformer/int8_rows.hpp"

namespace draftproof {

void Int8Rows::resize(int rows, std::int64_t columns) {
  const std::int64_t blocks = columns / kBlockColumns;
  if (rows == rows_ && blocks == blocks_) return;
  rows_ = rows;
  blocks_ = blocks;
  const auto cells = static_cast<std::size_t>(rows) * static_cast<std::size_t>(blocks);
  q_.resize(cells * kBlockColumns);
  floats_.resize(cells * 4);
  integers_.resize(cells * 4);
  tiles_.clear();
  tile_of_row_.clear();
  const int num_tiles = (rows + kTileRows - 1) / kTileRows;
  std::int8_t* q = q_.data();
  float* floats = floats_.data();
  std::int32_t* integers = integers_.data();
  for (int t = 0, first = 0; t < num_tiles; ++t) {
    const int of_tile = (rows - first) / (num_tiles - t);
    const auto size = static_cast<std::size_t>(of_tile) * static_cast<std::size_t>(blocks);
    tiles_.push_back(
        {first, of_tile, q, floats, floats + size, floats + 2 * size, integers, integers + size, integers + 2 * size});
    tile_of_row_.insert(tile_of_row_.end(), static_cast<std::size_t>(of_tile), static_cast<std::size_t>(t));
    q += size * kBlockColumns;
    floats += size * 4;
    integers += size * 4;
    first += of_tile;
  }
}

}  // namespace draftproof
