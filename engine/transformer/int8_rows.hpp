// Rows of activations as int8, by blocks of 32 columns, in tiles of at most 16 rows that one pass over the weights
// serves.
//
// Per block: amax = max |x|, d = amax / 127, q = x (127 / amax) to nearest, ties to even; d = 0 and q = 0 where
// amax <= 1e-30. A block with a NaN or an infinity has d = NaN and q = 0, so that what is made of the row is NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/transformer/packed_format.hpp"

namespace draftproof {

inline constexpr int kTileRows = 16;

// A block of a row: one line of the cache, so that threads that make neighbouring rows do not write to the same one.
// Sums are over the codes q and exact; they stand there multiplied by what the offsets of the packed formats make of
// them.
struct alignas(64) Int8Block {
  std::int8_t q[kBlockColumns];
  float scale;                         // d
  float scaled_sum;                    // d sum(q)
  float scaled_half_sums[2];           // d sum(q) of the lower and of the upper 16 columns
  std::int32_t minus_8_sum;            // -8 sum(q)
  std::int32_t minus_128_sum;          // -128 sum(q)
  std::int32_t minus_32_half_sums[2];  // -32 sum(q) of 16 columns
};
static_assert(sizeof(Int8Block) == 64);

struct Int8Tile {
  int first_row;      // of the batch
  int rows;           // 1 to kTileRows
  Int8Block* blocks;  // [blocks][rows]
};

// The tiles of a batch of rows [columns]: as few as there can be, of equal size but for one row.
class Int8Rows {
 public:
  void resize(int rows, std::int64_t columns);

  int rows() const { return rows_; }
  std::int64_t blocks() const { return blocks_; }
  std::span<const Int8Tile> tiles() const { return tiles_; }
  // The tile of a row of the batch.
  const Int8Tile& tile_of(int row) const { return tiles_[tile_of_row_[static_cast<std::size_t>(row)]]; }

 private:
  int rows_ = 0;
  std::int64_t blocks_ = 0;
  std::vector<Int8Tile> tiles_;
  std::vector<std::size_t> tile_of_row_;
  std::vector<Int8Block> cells_;
};

}  // namespace draftproof
