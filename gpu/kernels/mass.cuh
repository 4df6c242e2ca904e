// Mass pass: the fixed-point softmax of rows of logits, one block a tile (twin: LogitsDistribution::assign and the row
// kernel tile_mass). Also, for greedy rows, the first token of the total order.
//
//   logits [rows, vocab_size] -> tile_sum [rows, tiles] u64, tile_exponent [rows, tiles] i32, status [rows]
//
// Ladder (bytes that must move: vocab_size * sizeof(element) a row, read once; 12 a tile written):
//   v2 (this)  the exponent of the largest logit is the tile's exponent, since rint(x log2 e) does not fall as x grows.
//       The tile's exponent rides in the constant that rounds, and a conversion to a 64-bit integer makes the mass.
//       16-bit logits are kept as they are stored, two compared at once; 64 elements a thread and two warps a tile:
//       45.0 us on an H200 for 384 rows of 128,256 bf16, where 128 elements and one warp take 46.5. Of the instructions
//       of an element (gpu/golden/budget.txt) 9 are the reduction and the polynomial of exp_parts, which the contract
//       fixes. Tiles that are cut off, unaligned or divided by a temperature are read twice, in a loop; the division
//       goes through the reciprocal of the temperature.
//   next: clusters that keep a row in shared memory for the filters that follow.
#pragma once

#include "gpu/kernels/distribution.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Grid: rows * tiles blocks of kThreads.
template <class Element, int kThreads>
__global__ void __launch_bounds__(kThreads)
    mass_tiles(RowsView logits, Global<const float> temperature, RowRequests row_requests, std::int64_t vocab_size,
               std::int64_t tiles, Global<std::uint64_t> tile_sum, Global<std::int32_t> tile_exponent) {
  const std::int64_t row = blockIdx.x / static_cast<std::uint32_t>(tiles);
  const std::int64_t tile = blockIdx.x % static_cast<std::uint32_t>(tiles);
  const float t = temperature == nullptr ? 1.0f : static_cast<float>(temperature[row_requests.of(row)]);
  const std::int64_t first = tile * kTileTokens;
  const TileResult result = mass_of_tile<kThreads>(TileOfRow<Element>{
      logits.elements<Element>(), row * logits.row_stride + first, first, vocab_size - first, logits.aligned != 0, t});
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

// Rows whose sums are given. The exponent of the row stands for those of its tiles: without filters these only say
// where a token's weight is 0, and its probability is 0 there already. Sums that no row has refuse it. Grid: rows
// blocks.
__global__ void adopt_rows(RowRequests row_requests, Global<const std::int32_t> exponent,
                           Global<const std::uint64_t> total, Global<const std::int32_t> status, std::int64_t tiles,
                           Global<std::int32_t> tile_exponent, Global<DistributionRow> rows) {
  const std::int64_t row = blockIdx.x;
  DistributionRow out = unfiltered_row();
  out.exponent = exponent[row];
  out.total = total[row];
  out.unfiltered_total = out.total;
  out.status = status[row];
  const bool is_sum = out.total > 0 && out.exponent > kMaskedExponent && out.exponent < -kMaskedExponent;
  if (out.status == DRAFTPROOF_ROW_OK && !is_sum) out.status = DRAFTPROOF_ROW_NOTHING_LEFT;
  if (!row_requests.valid(row)) out.status = DRAFTPROOF_ROW_BAD_ID;
  for (std::int64_t t = threadIdx.x; t < tiles; t += blockDim.x) tile_exponent[row * tiles + t] = out.exponent;
  if (threadIdx.x == 0) rows[row] = out;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
