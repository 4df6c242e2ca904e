// The first message of rows that lie on several devices: largest exponents of the tiles, largest logit, status; and the
// device's sums in a scale of its own (twin: RowShard, reference/shard/row_shard.hpp).
//
//   logits [rows, tokens of the device] -> tile_exponent [rows, tiles + 1], largest [rows], own_exponent and own_sum
//
// Ladder (bytes that must move: the device's logits, read once; 24 a tile of the row written):
//   v1 (this)  a block a tile, mass_of_tile of the whole row's mass pass. The largest logit is found in a second loop
//       over a tile that the first level cache holds.
//   next: the largest logit from the words that mass_of_tile keeps.
#pragma once

#include "gpu/kernels/shard_rows.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct PreparedRows {
  Global<std::int32_t> tile_exponent;  // [rows, tiles + 1]
  Global<std::int64_t> largest;        // [rows]
  Global<std::int32_t> own_exponent;   // [rows, tiles]; a tile that is refused says why first
  Global<std::uint64_t> own_sum;       // [rows, tiles]
};

// Grid: rows blocks. Nothing is known of any tile yet; `largest` takes maxima.
__global__ void begin_shard_rows(ShardView shard, PreparedRows out) {
  const std::int64_t row = blockIdx.x;
  for (std::int64_t t = threadIdx.x; t < shard.tiles; t += blockDim.x) {
    out.own_exponent[row * shard.tiles + t] = kMaskedExponent;
    out.own_sum[row * shard.tiles + t] = 0;
  }
  if (threadIdx.x == 0) out.largest[row] = -1;
}

// Grid: rows * tiles of the device blocks of kThreads.
template <class Element, int kThreads>
__global__ void __launch_bounds__(kThreads) prepare_shard_tiles(ShardView shard, PreparedRows out) {
  const std::int64_t row = blockIdx.x / static_cast<std::uint32_t>(shard.device_tiles);
  const std::int64_t tile = shard.first_tile + blockIdx.x % static_cast<std::uint32_t>(shard.device_tiles);
  const float temperature = shard.temperature_of(row);
  const std::int64_t first = shard.begin_in(tile);
  const bool aligned = shard.logits.aligned != 0 && (first - shard.begin) % ShardView::kCount == 0;
  const TileResult result = mass_of_tile<kThreads>(
      TileOfRow<Element>{shard.logits.elements<Element>(), row * shard.logits.row_stride + first - shard.begin, first,
                         shard.end_in(tile) - first, aligned, temperature});
  const bool greedy = temperature == 0.0f;
  std::uint64_t packed = 0;
  if (result.status == DRAFTPROOF_ROW_OK && greedy) packed = result.sum;
  if (result.status == DRAFTPROOF_ROW_OK && !greedy) {
    shard.for_each(row, tile, [&](float x, std::int64_t token) { packed = Max{}(packed, packed_first(x, token)); });
    packed = block_reduce(packed, Max{});
  }
  if (threadIdx.x != 0) return;
  const std::int64_t at = row * shard.tiles + tile;
  out.own_sum[at] = result.status == DRAFTPROOF_ROW_OK && !greedy ? result.sum : 0;
  out.own_exponent[at] = result.status == DRAFTPROOF_ROW_OK ? result.exponent : kRefusedTile + result.status;
  if (packed != 0) atomicMax(&out.largest[row], largest_of(packed));
}

// Grid: rows blocks. A row that the device refuses has neither exponents nor sums.
__global__ void finish_shard_rows(ShardView shard, PreparedRows out) {
  const std::int64_t row = blockIdx.x;
  std::int32_t status = DRAFTPROOF_ROW_OK;
  for (std::int64_t t = threadIdx.x; t < shard.tiles; t += blockDim.x) {
    const std::int32_t exponent = out.own_exponent[row * shard.tiles + t];
    if (exponent >= kRefusedTile) status = Max{}(status, exponent - kRefusedTile);
  }
  status = block_reduce(status, Max{});
  const bool refused = status != DRAFTPROOF_ROW_OK;
  for (std::int64_t t = threadIdx.x; t < shard.tiles; t += blockDim.x) {
    const std::int64_t at = row * shard.tiles + t;
    if (refused) out.own_exponent[at] = kMaskedExponent;
    if (refused) out.own_sum[at] = 0;
    const std::int32_t exponent = out.own_exponent[at];
    out.tile_exponent[row * (shard.tiles + 1) + t] = exponent;
  }
  if (threadIdx.x != 0) return;
  out.tile_exponent[row * (shard.tiles + 1) + shard.tiles] = status;
  if (refused) out.largest[row] = -1;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
