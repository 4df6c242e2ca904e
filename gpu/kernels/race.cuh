// The exponential race: the kept token with the largest logit + Gumbel noise, one block a tile (twin: the row kernel
// race under Chance::race).
//
//   logits [rows, vocab_size], DistributionRow [rows] -> winner_score, winner_token [rows, tiles]
//
// Ladder (bytes that must move: vocab_size * sizeof(element) a row, read once; 12 a tile written):
//   v1 (this)  eight tokens a thread from two Philox blocks; scores as ordered integers.
//   next: the noise of tokens too far behind the tile's best to win is not computed.
#pragma once

#include "gpu/kernels/draw.cuh"
#include "gpu/kernels/parameters.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// a < b as doubles iff score_key(a) < score_key(b); not NaN. -0 and +0 are one value and get one key. Never 0.
__device__ inline std::uint64_t score_key(double score) {
  const std::uint64_t bits = bit_cast<std::uint64_t>(score + 0.0);
  return bits ^ ((std::uint64_t{0} - (bits >> 63)) | 0x8000000000000000ull);
}

// Larger score first, lowest id first among equals. score 0: nobody.
struct Winner {
  std::uint64_t score;
  Token token;
};
__device__ inline Winner block_winner(const Winner& own) {
  Winner best{block_reduce(own.score, Max{}), 0};
  best.token = block_reduce(own.score == best.score ? own.token : 0x7fffffff, Min{});
  return best;
}

struct Randomness {
  Global<const std::uint64_t> seed;         // [requests]; null: 0
  Global<const std::uint32_t> step;         // [requests]; null: 0
  Global<const std::uint32_t> row_in_step;  // [rows]; null: 0
  std::uint32_t purpose;
};

// Grid: rows * tiles blocks.
__global__ void race_tiles(LogitsDistribution distribution, Randomness random, Global<std::uint64_t> winner_score,
                           Global<Token> winner_token) {
  constexpr int kCount = 8;
  const std::int64_t row = blockIdx.x / distribution.tiles;
  const std::int64_t tile = blockIdx.x % distribution.tiles;
  const std::int64_t request = distribution.request_of(row);
  const DistributionRow record = distribution.rows[row];
  Winner best{0, 0x7fffffff};
  const std::int64_t tile_end = (tile + 1) * kTileTokens;
  std::int64_t end = tile_end < distribution.vocab_size ? tile_end : distribution.vocab_size;
  if (record.status != DRAFTPROOF_ROW_OK || record.greedy_token != DRAFTPROOF_NO_TOKEN) end = 0;  // nobody runs
  const std::int32_t exponent = distribution.tile_exponent[row * distribution.tiles + tile];
  const float temperature = distribution.temperature_of(row);
  const std::uint64_t seed = value_of<std::uint64_t>(random.seed, request, 0);
  Address address{0, value_of<std::uint32_t>(random.row_in_step, row, 0),
                  value_of<std::uint32_t>(random.step, request, 0), static_cast<Purpose>(random.purpose)};
  for (std::int64_t column = tile * kTileTokens + threadIdx.x * kCount; column < end; column += blockDim.x * kCount) {
    float x[kCount];
    load_row(distribution.logits, row, column, distribution.vocab_size, negative_infinity(), x);
    RandomBlock words{};
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (i % 4 == 0) {
        address.index = static_cast<std::uint32_t>(column + i) / 4;
        words = random_block(seed, address);
      }
      const float logit = over_temperature(x[i], temperature);
      if (!is_kept(record, logit, column + i, exponent)) continue;
      const std::uint64_t score = score_key(static_cast<double>(logit) + gumbel_noise(words.word[i % 4]));
      if (score > best.score) best = {score, static_cast<Token>(column + i)};
    }
  }
  best = block_winner(best);
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
