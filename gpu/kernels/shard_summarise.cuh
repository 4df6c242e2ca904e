// Sums of the tiles of rows that lie on several devices, in the scale of the row (twin: RowShard,
// reference/shard/row_shard.hpp).
//
//   largest exponents of the row's tiles, own sums -> tile_sum [rows, tiles]
//
// Ladder (bytes that must move: without filters the tiles whose exponent another device raised, two at most, those that
// a cut goes through; with filters the device's logits):
//   v1 (this)  a block a tile.
//   next: tiles that the device has nothing of without a block of their own.
#pragma once

#include "gpu/kernels/shard_rows.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// S_t of the device's tokens that the row keeps, in the scale of the row's tile.
__device__ inline std::uint64_t kept_sum_of_tile(const ShardView& shard, const DistributionRow& record,
                                                 std::int64_t row, std::int64_t tile, std::int32_t exponent) {
  std::uint64_t sum = 0;
  shard.for_each(row, tile, [&](float x, std::int64_t token) {
    if (is_kept(record, x, token, exponent)) sum += mass_in_tile(x, exponent);
  });
  return block_reduce(sum, Sum{});
}

// Grid: rows * tiles blocks.
__global__ void summarise_shard_tiles(ShardView shard, CombinedRows rows, Global<const std::int32_t> own_exponent,
                                      Global<const std::uint64_t> own_sum, Global<std::uint64_t> tile_sum) {
  const std::int64_t row = blockIdx.x / static_cast<std::uint32_t>(shard.tiles);
  const std::int64_t tile = blockIdx.x % static_cast<std::uint32_t>(shard.tiles);
  const std::int64_t at = row * shard.tiles + tile;
  const float temperature = shard.temperature_of(row);
  const DistributionRow record = combined_row(rows, row, temperature);
  const std::int32_t exponent = rows.exponent(row, tile);
  std::uint64_t sum = own_sum[at];
  const bool is_read = sum != 0 && (rows.kept != nullptr || exponent != own_exponent[at]);
  if (record.status != DRAFTPROOF_ROW_OK || temperature == 0.0f) {
    sum = 0;
  } else if (is_read) {  // the same in all threads
    sum = kept_sum_of_tile(shard, record, row, tile, exponent);
  }
  if (threadIdx.x == 0) tile_sum[at] = sum;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
