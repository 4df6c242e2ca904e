// The exponential race: the kept token with the largest logit + Gumbel noise, one block a tile (twin: the row kernel
// race under Chance::race).
//
//   logits [rows, vocab_size], DistributionRow [rows] -> winner_score, winner_token [rows, tiles]
//
// Ladder (bytes that must move: vocab_size * sizeof(element) a row, read once; 12 a tile written):
//   v3 (this)  eight tokens a thread from two Philox blocks. The row's sum says which score its winner reaches but for
//       one row in 2 * 10^5; the largest logit and the smallest word of four tokens show, by one float logarithm, that
//       none of them does. Where one may, a logarithm each bounds the scores from both sides, within half a bit, and
//       the noise, two logarithms in double precision, is of tokens alone that may win: about 17 of a row. A row whose
//       winner lies below the guess is run again without one, by its own block.
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

// The best of a tile of a row that draws.
__device__ inline Winner race_of_tile(const LogitsDistribution& distribution, const Randomness& random,
                                      const DistributionRow& record, std::int64_t row, std::int64_t tile, float guess) {
  const std::int64_t tile_end = (tile + 1) * kTileTokens;
  const std::int64_t end = tile_end < distribution.vocab_size ? tile_end : distribution.vocab_size;
  const auto racing =
      racing_tile(LogitsOfRow{distribution, row}, record, random, row, distribution.request_of(row),
                  distribution.tile_exponent[row * distribution.tiles + tile], distribution.temperature_of(row));
  return winner_of_tile(racing, tile * kTileTokens, end, guess);
}

// Grid: rows * tiles blocks.
__global__ void race_tiles(LogitsDistribution distribution, Randomness random, Global<std::uint64_t> winner_score,
                           Global<Token> winner_token) {
  const std::int64_t row = blockIdx.x / static_cast<std::uint32_t>(distribution.tiles);
  const std::int64_t tile = blockIdx.x % static_cast<std::uint32_t>(distribution.tiles);
  const DistributionRow record = distribution.rows[row];
  if (record.status != DRAFTPROOF_ROW_OK || record.greedy_token != DRAFTPROOF_NO_TOKEN) return;  // nobody runs
  const Winner best = race_of_tile(distribution, random, record, row, tile, guessed_score(record));
  if (threadIdx.x != 0) return;
  winner_score[row * distribution.tiles + tile] = best.score;
  winner_token[row * distribution.tiles + tile] = best.token;
}

// The winner of a row that draws, by all threads of a block.
__device__ inline Token race_winner(const LogitsDistribution& distribution, const Randomness& random,
                                    const DistributionRow& record, std::int64_t row,
                                    Global<const std::uint64_t> winner_score, Global<const Token> winner_token) {
  Winner best = best_of_tiles(row, distribution.tiles, winner_score, winner_token);
  if (confirms(guessed_score(record), best.score)) return best.token;
  best = {0, 0x7fffffff};
  for (std::int64_t tile = 0; tile < distribution.tiles; ++tile) {
    const Winner of_tile = race_of_tile(distribution, random, record, row, tile, kNoGuess);
    if (of_tile.score > best.score) best = of_tile;
  }
  return best.token;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
