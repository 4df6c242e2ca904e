// A token of every row's distribution and what callers ask about it, one block a row; the distribution itself, one
// block a tile (twin: reference_executor/sample.cpp over LogitsDistribution).
//
//   distribution -> tokens, logprobs, kept_mass, kept_count, status [rows]; probabilities [rows, probabilities_stride]
//
// Ladder (bytes that must move: one tile of the row; 4 vocab_size written where probabilities are wanted):
//   v1 (this)  a scan over the tiles, one over a tile.
//   next: the draw in the last block of the row's mass pass, which saves a launch.
#pragma once

#include "gpu/kernels/race.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct SampledRows {
  LogitsDistribution distribution;
  Randomness random;
  Global<const std::uint64_t> winner_score;  // null: drawn by inverse mass
  Global<const Token> winner_token;
  Global<Token> tokens;
  Global<float> logprobs;
  Global<float> kept_mass;
  Global<std::int64_t> kept_count;
  Global<std::int32_t> status;
};

// Grid: rows blocks.
__global__ void sample_rows(SampledRows s) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t request = s.distribution.request_of(row);
  const DistributionRow record = s.distribution.rows[row];
  const bool draws = record.status == DRAFTPROOF_ROW_OK;
  const bool greedy = record.greedy_token != DRAFTPROOF_NO_TOKEN;
  Token token = DRAFTPROOF_NO_TOKEN;
  if (draws && greedy) {
    token = record.greedy_token;
  } else if (draws && s.winner_score != nullptr) {
    token = race_winner(s.distribution, s.random, record, row, s.winner_score, s.winner_token);
  } else if (draws) {
    const Address address{0, value_of<std::uint32_t>(s.random.row_in_step, row, 0),
                          value_of<std::uint32_t>(s.random.step, request, 0), static_cast<Purpose>(s.random.purpose)};
    token = draw_by_inverse_mass(s.distribution, row,
                                 random_block(value_of<std::uint64_t>(s.random.seed, request, 0), address));
  }
  if (threadIdx.x != 0) return;
  s.tokens[row] = token;
  s.status[row] = record.status;
  if (s.logprobs != nullptr)
    s.logprobs[row] = draws ? log_probability(s.distribution, row, token) : negative_infinity();
  if (s.kept_count != nullptr) s.kept_count[row] = draws ? record.kept_count : 0;
  if (s.kept_mass == nullptr) return;
  const double share = greedy ? 1.0 : static_cast<double>(record.total) / static_cast<double>(record.unfiltered_total);
  s.kept_mass[row] = draws ? static_cast<float>(share) : 0.0f;
}

// Grid: rows * tiles blocks.
__global__ void write_probabilities(LogitsDistribution distribution, Global<float> probabilities, std::int64_t stride,
                                    bool aligned) {
  constexpr int kCount = 8;
  const std::int64_t row = blockIdx.x / distribution.tiles;
  const std::int64_t tile = blockIdx.x % distribution.tiles;
  const DistributionRow record = distribution.rows[row];
  const std::int32_t exponent = distribution.tile_exponent[row * distribution.tiles + tile];
  const float temperature = distribution.temperature_of(row);
  const float reciprocal = reciprocal_total(record.total);
  const std::int64_t tile_end = (tile + 1) * kTileTokens;
  const std::int64_t end = tile_end < distribution.vocab_size ? tile_end : distribution.vocab_size;
  for (std::int64_t column = tile * kTileTokens + threadIdx.x * kCount; column < end; column += blockDim.x * kCount) {
    float p[kCount];
    load_row(distribution.logits, row, column, distribution.vocab_size, negative_infinity(), p);
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float x = over_temperature(p[i], temperature);
      p[i] = record.status == DRAFTPROOF_ROW_OK ? probability_in(record, x, column + i, exponent, reciprocal) : 0.0f;
    }
    store_eight(probabilities, row * stride + column, end - column, aligned, p);
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
