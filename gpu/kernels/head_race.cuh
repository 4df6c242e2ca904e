// A worked example: the race fused into the product of a language model's head, of FlashSampling (arXiv 2603.15854).
// The winner of a tile merges with those of others in any order, so that the logits of 4,096 tokens race where they are
// made and none is stored.
//
//   hidden [rows, width], head [vocab_size, width] f32 -> tokens [rows]: those of sample with a race over the logits
//   that head_logits writes, bit for bit
//
// A skeleton: a thread makes the logits of its tokens, from global memory and again where they are asked for twice. A
// product for production puts the tile that its tensor cores made into shared memory and gives the race another
// `load`; the bits are those of the unfused call where both add in one order.
//
// Ladder (bytes that must move: the head, read once for all rows; of logits none, where the unfused call writes and
// reads 4 rows vocab_size each):
//   v1 (this)  the head is read once for each row.
#pragma once

#include "gpu/kernels/race_tile.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct HeadProduct {
  Global<const float> hidden;  // [rows, width]
  Global<const float> head;    // [vocab_size, width]
  std::int64_t width;
  std::int64_t vocab_size;

  // One order of additions, whoever asks.
  __device__ float logit(std::int64_t row, std::int64_t token) const {
    float sum = 0.0f;
    for (std::int64_t k = 0; k < width; ++k)
      sum = std::fma(static_cast<float>(hidden[row * width + k]), static_cast<float>(head[token * width + k]), sum);
    return sum;
  }
};

// The logits of a row, eight from `column` on.
struct LogitsOfHead {
  const HeadProduct& product;
  std::int64_t row;

  __device__ void load(std::int64_t column, float (&x)[8]) const {
    for (int i = 0; i < 8; ++i)
      x[i] = column + i < product.vocab_size ? product.logit(row, column + i) : negative_infinity();
  }
};

// What the unfused call samples from. Grid: rows blocks.
__global__ void head_logits(HeadProduct product, Global<float> logits) {
  const std::int64_t row = blockIdx.x;
  for (std::int64_t token = threadIdx.x; token < product.vocab_size; token += blockDim.x)
    logits[row * product.vocab_size + token] = product.logit(row, token);
}

// temperature: [rows], above 0; null: 1. Row r is request r of `random`. Logits are numbers up to 2^29. Grid: rows *
// tiles blocks.
__global__ void race_head_tiles(HeadProduct product, Global<const float> temperature, Randomness random,
                                std::int64_t tiles, Global<std::uint64_t> winner_score, Global<Token> winner_token) {
  const std::int64_t row = blockIdx.x / tiles;
  const std::int64_t first = blockIdx.x % tiles * kTileTokens;
  const std::int64_t end = first + kTileTokens < product.vocab_size ? first + kTileTokens : product.vocab_size;
  const auto racing = racing_tile(LogitsOfHead{product, row}, unfiltered_row(), random, row, row, kMaskedExponent,
                                  value_of(temperature, row, 1.0f));
  const Winner best = winner_of_tile(racing, first, end);
  if (threadIdx.x != 0) return;
  winner_score[blockIdx.x] = best.score;
  winner_token[blockIdx.x] = best.token;
}

// Grid: rows blocks.
__global__ void finish_head_race(std::int64_t tiles, Global<const std::uint64_t> winner_score,
                                 Global<const Token> winner_token, Global<Token> tokens) {
  const Winner best = best_of_tiles(blockIdx.x, tiles, winner_score, winner_token);
  if (threadIdx.x == 0) tokens[blockIdx.x] = best.score == 0 ? DRAFTPROOF_NO_TOKEN : best.token;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
