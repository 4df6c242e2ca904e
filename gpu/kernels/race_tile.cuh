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

__device__ inline double value_of_score_key(std::uint64_t key) {
  return bit_cast<double>(key >> 63 != 0 ? key ^ 0x8000000000000000ull : ~key);
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

// The best of a row from those of its tiles, by all threads of the block.
__device__ inline Winner best_of_tiles(std::int64_t row, std::int64_t tiles, Global<const std::uint64_t> winner_score,
                                       Global<const Token> winner_token) {
  Winner best{0, 0x7fffffff};
  for (std::int64_t t = threadIdx.x; t < tiles; t += blockDim.x) {
    const std::uint64_t score = winner_score[row * tiles + t];
    if (score > best.score) best = {score, winner_token[row * tiles + t]};
  }
  return block_winner(best);
}

struct Randomness {
  Global<const std::uint64_t> seed;         // [requests]; null: 0
  Global<const std::uint32_t> step;         // [requests]; null: 0
  Global<const std::uint32_t> row_in_step;  // [rows]; null: 0
  std::uint32_t purpose;
};

// A score in bits, (logit + noise) / ln 2, from above and but for a constant. The noise is -log(-log(1 - v)) for
// v = (word + 1/2) 2^-32; since v <= -log(1 - v), it is at most -log2(v) bits, and at most kNoiseSlack less up to
// v = 1/2. Of several tokens the largest logit and the smallest word bound every score.
inline constexpr float kNoiseSlack = 0.4713f;  // log2(2 ln 2)
inline constexpr float kWordBits = 32.0f;      // the constant: -log2(v) = 32 - log2(word + 1/2)
__device__ inline float score_bits(float logit, std::uint32_t word) {
  constexpr float kLog2E = 0x1.715476p+0f;
  return std::fma(logit, kLog2E, -approximate_log2(static_cast<float>(word) + 0.5f));
}
__device__ inline bool has_tight_bound(std::uint32_t word) {
  return (word & 0x80000000u) == 0;
}
// Of score_bits, generously.
__device__ inline float rounding_of(float bits) {
  return 1e-3f + 1e-5f * (bits < 0.0f ? -bits : bits);
}

// A score, in bits as score_bits has them, that some token of the row reaches but for one row in 2 * 10^5: the largest
// score has Gumbel's distribution around log S, and lies 2.5 below with probability exp(-exp(2.5)). kNoGuess, which
// every score reaches, where rounding would swallow the difference.
inline constexpr float kNoGuess = -0x1p126f;
__device__ inline float guessed_score(const DistributionRow& row) {
  constexpr std::int32_t kLargestExponent = 20000;
  constexpr float kBelow = 3.607f;  // 2.5 / ln 2
  if (row.exponent < -kLargestExponent || row.exponent > kLargestExponent) return kNoGuess;
  const float log_sum = approximate_log2(static_cast<float>(row.total)) + static_cast<float>(row.exponent - kMassBits);
  return log_sum - kWordBits - kBelow;
}
// Does a score that was found show that every token that may beat it was looked at?
__device__ inline bool confirms(float guess, std::uint64_t score) {
  if (score == 0) return false;
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  return value_of_score_key(score) * kLog2E - static_cast<double>(kWordBits) >=
         static_cast<double>(guess + rounding_of(guess));
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
  static constexpr int kGroup = 4;  // that are bounded together

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

// The best of the tokens [begin, end) of a tile, by all threads of the block. begin: a multiple of kCount. Tokens whose
// score_bits stay below `guess` may be left out.
template <class Logits>
__device__ inline Winner winner_of_tile(const RacingTile<Logits>& racing, std::int64_t first, std::int64_t end,
                                        float guess = kNoGuess) {
  constexpr int kCount = RacingTile<Logits>::kCount;
  constexpr int kGroup = RacingTile<Logits>::kGroup;
  const std::int64_t begin = first + threadIdx.x * kCount;

  // One score of the tile lies at `lowest` or above, less the slack. No score of this thread lies above `highest` or
  // `bound`, and none above `others` or `bound` but for those of the eight tokens from `place` on.
  float bound = guess - rounding_of(guess);
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
    for (int i = 0; i < kCount; i += kGroup) {
      float largest = x[i];
      std::uint32_t smallest = word[i];
      DRAFTPROOF_UNROLL
      for (int e = 1; e < kGroup; ++e) {
        largest = std::fmax(largest, x[i + e]);
        smallest = Min{}(smallest, word[i + e]);
      }
      of_eight = std::fmax(of_eight, score_bits(largest, smallest));
    }
    if (!(of_eight >= bound)) continue;
    of_eight = negative_infinity();
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float bits = score_bits(x[i], word[i]);
      of_eight = std::fmax(of_eight, bits);
      if (has_tight_bound(word[i])) lowest = std::fmax(lowest, bits);
    }
    others = std::fmax(others, std::fmin(of_eight, highest));
    if (of_eight > highest) place = column;
    highest = std::fmax(of_eight, highest);
    if (lowest > negative_infinity()) bound = std::fmax(bound, lowest - kNoiseSlack - rounding_of(lowest));
  }
  bound = value_of_key(block_reduce(order_key(bound), Max{}));

  Winner best{0, 0x7fffffff};
  if (others >= bound) {
    for (std::int64_t column = begin; column < end; column += blockDim.x * kCount) racing.run(column, bound, best);
  } else if (highest >= bound) {
    racing.run(place, bound, best);
  }
  return block_winner(best);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
