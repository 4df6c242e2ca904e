// The exponential race within one tile: the kept token with the largest logit + Gumbel noise, by one block, whoever has
// the logits: a whole row (race.cuh) or one of several devices (shard_draw.cuh). Twin: the row kernel race.
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

// A score in bits, (logit + noise) / ln 2, from above and but for a constant. The noise is -log(-log(1 - v)) for
// v = (word + 1/2) 2^-32; since v <= -log(1 - v), it is at most -log2(v) bits, and at most kNoiseSlack less up to
// v = 1/2.
inline constexpr float kNoiseSlack = 0.4713f;  // log2(2 ln 2)
__device__ inline float score_bits(float logit, std::uint32_t word) {
  constexpr float kLog2E = 0x1.715476p+0f;
  return std::fma(logit, kLog2E, -approximate_log2(static_cast<float>(word) + 0.5f));
}
__device__ inline bool has_tight_bound(std::uint32_t word) {
  return (word & 0x80000000u) == 0;
}

// The tokens of a tile and their random words, eight of each at a time. Logits: load(column, x), before
// the temperature.
template <class Logits>
struct RacingTile {
  Logits logits;
  DistributionRow record;
  std::int32_t exponent;
  float temperature;
  bool keeps_all;
  std::uint64_t seed;
  Address address;

  static constexpr int kCount = 8;

  // Processed logits, -infinity where a token does not run, and words.
  __device__ void load(std::int64_t column, float (&x)[kCount], std::uint32_t (&word)[kCount]) const {
    logits.load(column, x);
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; i += 4) {
      Address at = address;
      at.index = static_cast<std::uint32_t>(column + i) / 4;
      const RandomBlock block = random_block(seed, at);
      DRAFTPROOF_UNROLL
      for (int w = 0; w < 4; ++w) word[i + w] = block.word[w];
    }
    if (temperature != 1.0f) {
      DRAFTPROOF_UNROLL
      for (int i = 0; i < kCount; ++i) x[i] = over_temperature(x[i], temperature);
    }
    if (keeps_all) return;
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i)
      if (!is_kept(record, x[i], column + i, exponent)) x[i] = negative_infinity();
  }

  // The best of `best` and those of the eight tokens from `column` on that may reach the bound.
  __device__ void run(std::int64_t column, float bound, Winner& best) const {
    float x[kCount];
    std::uint32_t word[kCount];
    load(column, x, word);
    std::uint32_t running = 0;
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i)
      if (x[i] >= -kLogitLimit && score_bits(x[i], word[i]) >= bound) running |= 1u << i;
    for (; running != 0; running &= running - 1) {  // one text of the noise, not eight
      const int i = __ffs(static_cast<int>(running)) - 1;
      float logit = x[0];
      std::uint32_t of_token = word[0];
      DRAFTPROOF_UNROLL
      for (int e = 1; e < kCount; ++e) {
        logit = e == i ? x[e] : logit;
        of_token = e == i ? word[e] : of_token;
      }
      const std::uint64_t score = score_key(static_cast<double>(logit) + gumbel_noise(of_token));
      if (score > best.score) best = {score, static_cast<Token>(column + i)};
    }
  }
};

template <class Logits>
__device__ inline RacingTile<Logits> racing_tile(Logits logits, const DistributionRow& record, const Randomness& random,
                                                 std::int64_t row, std::int64_t request, std::int32_t exponent,
                                                 float temperature) {
  return {logits,
          record,
          exponent,
          temperature,
          record.last_value == negative_infinity() && record.least_mass == 0,
          value_of<std::uint64_t>(random.seed, request, 0),
          {0, value_of<std::uint32_t>(random.row_in_step, row, 0), value_of<std::uint32_t>(random.step, request, 0),
           static_cast<Purpose>(random.purpose)}};
}

// The best of the tokens [begin, end) of a tile, by all threads of the block. begin: a multiple of kCount.
template <class Logits>
__device__ inline Winner winner_of_tile(const RacingTile<Logits>& racing, std::int64_t first, std::int64_t end) {
  constexpr int kCount = RacingTile<Logits>::kCount;
  const std::int64_t begin = first + threadIdx.x * kCount;

  // One score of the tile lies at `lowest` or above, less the slack. No score of this thread lies above `highest`, and
  // none above `others` but for those of the eight tokens from `place` on.
  float lowest = negative_infinity();
  float highest = negative_infinity();
  float others = negative_infinity();
  std::int64_t place = begin;
  for (std::int64_t column = begin; column < end; column += blockDim.x * kCount) {
    float x[kCount];
    std::uint32_t word[kCount];
    racing.load(column, x, word);
    float of_eight = negative_infinity();
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float bits = score_bits(x[i], word[i]);
      of_eight = std::fmax(of_eight, bits);
      if (has_tight_bound(word[i])) lowest = std::fmax(lowest, bits);
    }
    others = std::fmax(others, std::fmin(of_eight, highest));
    if (of_eight > highest) place = column;
    highest = std::fmax(of_eight, highest);
  }
  lowest = value_of_key(block_reduce(order_key(lowest), Max{}));
  const float rounding = 1e-3f + 1e-5f * (lowest < 0.0f ? -lowest : lowest);  // of score_bits, generously
  const float bound = lowest > negative_infinity() ? lowest - kNoiseSlack - rounding : lowest;

  Winner best{0, 0x7fffffff};
  if (others >= bound) {
    for (std::int64_t column = begin; column < end; column += blockDim.x * kCount) racing.run(column, bound, best);
  } else if (highest >= bound) {
    racing.run(place, bound, best);
  }
  return block_winner(best);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
