// Mass pass: the fixed-point softmax of rows of logits, one block a tile (twin: LogitsDistribution::assign and the row
// kernel tile_mass). Also, for greedy rows, the first token of the total order.
//
//   logits [rows, vocab_size] -> tile_sum [rows, tiles] u64, tile_exponent [rows, tiles] i32, status [rows]
//
// Ladder (bytes that must move: vocab_size * sizeof(element) a row, read once; 12 a tile written):
//   v1 (this)  the exponent of the largest logit is the tile's exponent, since rint(x log2 e) does not fall as x grows:
//       two operations an element find it, and one pass of exp_parts follows. A weight is scaled by adding to its
//       exponent bits, and its 45-bit mass is added up in two 32-bit halves that two float additions cut off: no
//       double, no 64-bit operation, the same integers. About 20 instructions an element.
//   next: clusters that keep a row in shared memory for the filters that follow.
#pragma once

#include "gpu/kernels/distribution.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Grid: rows * tiles blocks of kThreads.
template <class Element, int kThreads>
__global__ void __launch_bounds__(kThreads)
    mass_tiles(RowsView logits, Global<const float> temperature, RowRequests row_requests, std::int64_t vocab_size,
               std::int64_t tiles, Global<std::uint64_t> tile_sum, Global<std::int32_t> tile_exponent) {
  constexpr int kCount = kTileTokens / kThreads;
  const std::int64_t row = blockIdx.x / tiles;
  const std::int64_t tile = blockIdx.x % tiles;
  const float t = temperature == nullptr ? 1.0f : static_cast<float>(temperature[row_requests.of(row)]);
  float x[kCount];
  load_tile<Element>(logits, row, tile, vocab_size, t, x);
  const TileResult result =
      mass_of_tile<Vector<Element>::kCount>(x, tile * kTileTokens + threadIdx.x * Vector<Element>::kCount, t == 0.0f);
  if (threadIdx.x != 0) return;
  tile_sum[row * tiles + tile] = result.status == DRAFTPROOF_ROW_OK ? result.sum : 0;
  tile_exponent[row * tiles + tile] =
      result.status == DRAFTPROOF_ROW_OK ? result.exponent : kRefusedTile + result.status;
}

// Grid: rows blocks.
__global__ void finish_rows(Global<const float> temperature, RowRequests row_requests, std::int64_t tiles,
                            Global<std::uint64_t> tile_sum, Global<std::int32_t> tile_exponent,
                            Global<DistributionRow> rows) {
  const std::int64_t row = blockIdx.x;
  const float t = temperature == nullptr ? 1.0f : static_cast<float>(temperature[row_requests.of(row)]);
  const std::int32_t refused = row_requests.valid(row) ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_ID;
  const DistributionRow out = row_of_tiles(row, tiles, t, refused, tile_sum, tile_exponent);
  if (threadIdx.x == 0) rows[row] = out;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
