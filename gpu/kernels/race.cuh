// The exponential race: the kept token with the largest logit + Gumbel noise, one block a tile (twin: the row kernel
// race under Chance::race).
//
//   logits [rows, vocab_size], DistributionRow [rows] -> winner_score, winner_token [rows, tiles]
//
// Ladder (bytes that must move: vocab_size * sizeof(element) a row, read once; 12 a tile written):
//   v2 (this)  eight tokens a thread from two Philox blocks; the noise, two logarithms in double precision, only of
//       tokens that may win the tile: a float logarithm bounds each score from both sides, within half a bit; of 4,096
//       tokens one or two pass. A warp a tile where tiles are many. 596 us where all noise took 2,233 (H200, 1,024 rows
//       of 200,000 bf16, the mass pass included).
//   next: the winner of a row in the last block of its tiles, which saves a launch.
#pragma once

#include "gpu/kernels/race_tile.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// The logits of a row, eight from `column` on.
struct LogitsOfRow {
  const LogitsDistribution& distribution;
  std::int64_t row;

  __device__ void load(std::int64_t column, float (&x)[8]) const {
    load_row(distribution.logits, row, column, distribution.vocab_size, negative_infinity(), x);
  }
};

// Grid: rows * tiles blocks.
__global__ void race_tiles(LogitsDistribution distribution, Randomness random, Global<std::uint64_t> winner_score,
                           Global<Token> winner_token) {
  const std::int64_t row = blockIdx.x / static_cast<std::uint32_t>(distribution.tiles);
  const std::int64_t tile = blockIdx.x % static_cast<std::uint32_t>(distribution.tiles);
  const DistributionRow record = distribution.rows[row];
  const std::int64_t tile_end = (tile + 1) * kTileTokens;
  std::int64_t end = tile_end < distribution.vocab_size ? tile_end : distribution.vocab_size;
  if (record.status != DRAFTPROOF_ROW_OK || record.greedy_token != DRAFTPROOF_NO_TOKEN) end = 0;  // nobody runs
  const auto racing =
      racing_tile(LogitsOfRow{distribution, row}, record, random, row, distribution.request_of(row),
                  distribution.tile_exponent[row * distribution.tiles + tile], distribution.temperature_of(row));
  const Winner best = winner_of_tile(racing, tile * kTileTokens, end);
  if (threadIdx.x != 0) return;
  winner_score[row * distribution.tiles + tile] = best.score;
  winner_token[row * distribution.tiles + tile] = best.token;
}

// The winner of a row, by all threads of a block.
__device__ inline Token race_winner(const LogitsDistribution& distribution, std::int64_t row,
                                    Global<const std::uint64_t> winner_score, Global<const Token> winner_token) {
  Winner best{0, 0x7fffffff};
  for (std::int64_t t = threadIdx.x; t < distribution.tiles; t += blockDim.x) {
    const std::uint64_t score = winner_score[row * distribution.tiles + t];
    if (score > best.score) best = {score, winner_token[row * distribution.tiles + t]};
  }
  return block_winner(best).token;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
