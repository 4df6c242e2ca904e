// The loops over a tile (at most kTileTokens consecutive tokens of a row) that are worth vectorising. Each exists once
// in plain scalar code (row_kernels_scalar.cpp, the definition) and once in Google Highway (row_kernels_simd.cpp,
// compiled for AVX2 and AVX-512 and chosen when the program starts). All give the same bits, because every element goes
// through the same correctly rounded operations and every sum is over integers; the tests compare them on whichever
// targets the machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "reference/numerics/fixed_point.hpp"

namespace draftproof {

struct TileMass {
  std::uint64_t sum = 0;                 // S_t, at most 4096 * 1.415 * 2^44
  std::int32_t n_max = kMaskedExponent;  // N_t; kMaskedExponent: every token of the tile is masked
  std::int32_t n_min = kMaskedExponent;  // least exponent of the tile's tokens that are not masked
  std::int32_t kept = 0;                 // how many those are
};

// The part of a tile that a filter keeps: a prefix of the total order, cut further by a least mass.
struct TileCut {
  float last_value;      // tokens of a larger logit are in the prefix
  std::size_t position;  // and those of this logit that stand before this position in the tile (or part of it)
  double least_mass;     // least W_i, an integer
};

struct TileKept {
  std::uint64_t sum = 0;  // of the masses W_i that are left
  std::int32_t kept = 0;  // how many tokens those are
};

inline constexpr std::size_t kGroupTokens = 256;  // whose largest logit a pass over a tile notes
inline constexpr std::size_t kTileGroups = kTileTokens / kGroupTokens;

// Sums over tokens of a tile (or a part of it) that is cut in three by two values; m_i is W_i >> shift, the mass in the
// scale of the row.
struct TileBand {
  std::uint64_t above = 0;         // Sigma W_i over tokens above the band
  std::uint64_t above_in_row = 0;  // Sigma m_i over those
  std::uint64_t band_in_row = 0;   // Sigma m_i over those in the band
  std::int32_t above_count = 0;
  std::int32_t band_count = 0;
};

// Values and weights written to a band may be followed by this many meaningless ones.
inline constexpr std::size_t kBandSlack = 64;

struct TileResidual {
  std::uint64_t high = 0;  // sum of RNE(max(p - q, 0) 2^62) in units of 2^32, rounded down
  std::uint64_t low = 0;   // and its rest, below 2^32
  bool valid = true;       // every p and q was a number in [0, 1]; otherwise both sums are 0
};

// Carries what `low` has in units of 2^32 into `high`.
inline TileResidual carried(const TileResidual& sums) {
  return {sums.high + (sums.low >> 32), sums.low & 0xffffffffu, sums.valid};
}

struct TileExtremum {
  float value;         // largest logit; -infinity where all are masked
  std::int32_t index;  // its lowest position in the tile
  bool valid;          // no NaN and no +infinity
};

// Address of one 32-bit word per token for the race (random/address.hpp): the Philox key and counter words 1 to 3;
// counter word 0 is token / 4, and token % 4 picks the word.
struct NoiseAddress {
  std::uint32_t key[2];
  std::uint32_t row, step, purpose;
};

struct RaceWinner {
  double score;        // log weight + Gumbel noise; -infinity where all are masked
  std::int64_t token;  // lowest token id of that score, -1 where all are masked

  static constexpr RaceWinner none() { return {-std::numeric_limits<double>::infinity(), -1}; }
};

struct RowKernels {
  const char* target;  // "scalar", "AVX2", "AVX3", ...

  // Masses of logits x[0..count). Returns false if there is a NaN, a +infinity or a value above kLogitLimit; nothing
  // written is meaningful then.
  bool (*tile_mass)(const float* x, std::size_t count, TileMass* out);

  // Weights f 2^(n - N_t) of logits of a tile whose mass was taken, or of a part of it; N_t is n_max.
  void (*tile_weights)(const float* x, std::size_t count, std::int32_t n_max, float* weights);

  // Where `quotients` is not null, writes x[i] / divisor to it, rounded once, and looks at these instead of x; it may
  // be x. The exponents and the count that tile_mass finds, its sum left at 0, and the largest logit of every
  // kGroupTokens tokens (-infinity: all masked). False as tile_mass.
  bool (*tile_range)(const float* x, std::size_t count, float divisor, float* quotients, TileMass* out,
                     float* group_largest);

  // The weights of a tile whose range was taken, as tile_weights, and the sum of their masses, as tile_mass.
  std::uint64_t (*weigh_tile)(const float* x, std::size_t count, const TileMass& range, float* weights);

  // Sums by a band low <= x <= high, -kLogitLimit <= low, of tokens of one tile with these weights; shift is how far
  // N_t lies below the row's exponent. Writes the values and the weights of the band in order; there is room for count
  // + kBandSlack of each.
  TileBand (*tile_band)(const float* x, const float* weights, std::size_t count, std::int64_t shift, float low,
                        float high, float* band, float* band_weights);

  // Zeroes the weights of the tokens outside the cut.
  TileKept (*keep_in_tile)(const float* x, std::size_t count, const TileCut& cut, float* weights);

  // Sum of the masses of tile weights (after a filter has zeroed some).
  std::uint64_t (*weight_sum)(const float* weights, std::size_t count);

  // out[i] = (weights[i] * power) * reciprocal: the probabilities of a tile that is not deep.
  void (*scale_weights)(const float* weights, std::size_t count, float power, float reciprocal, float* out);

  // Sums of the residual masses of p over q; q null stands for zeros (then the masses are those of p itself).
  TileResidual (*residual)(const float* p, const float* q, std::size_t count);

  // Greedy choice in a tile.
  TileExtremum (*maximum)(const float* x, std::size_t count);

  // x[i] as log weight of the tokens whose weight is above 0, -infinity for the others. `weights` null: those that are
  // not masked.
  void (*log_weights_of)(const float* x, const float* weights, std::size_t count, double* out);

  // Largest log_weight[i] + gumbel(noise word of token first_token + i), or `best`, the winner of the tiles before,
  // where none is larger. first_token is a multiple of kTileTokens.
  RaceWinner (*race)(const double* log_weights, std::size_t count, std::uint32_t first_token, const NoiseAddress& noise,
                     RaceWinner best);

  // out[i] = x[i] / divisor, rounded once.
  void (*divide)(const float* x, std::size_t count, float divisor, float* out);

  // Half-precision rows to float, exact. A NaN keeps its bits, a signalling one too.
  void (*convert_f16)(const std::uint16_t* in, std::size_t count, float* out);
  void (*convert_bf16)(const std::uint16_t* in, std::size_t count, float* out);
};

const RowKernels& scalar_row_kernels();

// The fastest set on this processor.
const RowKernels& row_kernels();

// Every set that runs on this processor, the scalar one first.
std::vector<RowKernels> available_row_kernels();

// Makes row_kernels() return the set of that name; for tests and for `--simd`. Error: usage, naming the sets there are.
void select_row_kernels(const std::string& target);

}  // namespace draftproof
