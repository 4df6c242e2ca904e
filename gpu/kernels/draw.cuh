// A token of a row's distribution by inverse mass, all threads of a block together (twin: LogitsDistribution::draw):
// the tile by the tiles' masses M_t in the scale of the row, the token inside it by W_i. Whatever the vocabulary, one
// tile is read.
#pragma once

#include <cstdint>

#include "gpu/kernels/inverse_mass.cuh"
#include "gpu/kernels/row_reader.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// W_i of a token, 0 where it is masked or was dropped.
__device__ inline std::uint64_t kept_mass_in_tile(const DistributionRow& row, float x, std::int64_t token,
                                                  std::int32_t tile_exponent) {
  return is_kept(row, x, token, tile_exponent) ? mass_in_tile(x, tile_exponent) : 0;
}

// The tiles of a row with the mass of one token taken out.
struct DrawnRow {
  const LogitsDistribution& distribution;
  std::int64_t row;
  DistributionRow record;
  Token excluded;  // DRAFTPROOF_NO_TOKEN: none
  std::uint64_t excluded_mass;

  __device__ std::int32_t exponent(std::int64_t tile) const {
    return distribution.tile_exponent[row * distribution.tiles + tile];
  }
  __device__ std::uint64_t sum(std::int64_t tile) const {
    const std::uint64_t whole = distribution.tile_sum[row * distribution.tiles + tile];
    return excluded >= 0 && tile == excluded / kTileTokens ? whole - excluded_mass : whole;
  }
  __device__ std::uint64_t mass(std::int64_t tile) const {
    return row_scale(sum(tile), record.exponent, exponent(tile));
  }
};

__device__ inline DrawnRow drawn_row(const LogitsDistribution& distribution, std::int64_t row, Token excluded) {
  DrawnRow out{distribution, row, distribution.rows[row], excluded, 0};
  if (excluded < 0) return out;
  out.excluded_mass = kept_mass_in_tile(out.record, processed_logit(distribution, row, excluded), excluded,
                                        out.exponent(excluded / kTileTokens));
  return out;
}

// S with the excluded token's mass taken out; every thread gets it.
__device__ inline std::uint64_t total_of(const DrawnRow& drawn) {
  if (drawn.excluded < 0) return drawn.record.total;
  const std::int64_t tile = drawn.excluded / kTileTokens;
  const std::uint64_t whole = drawn.distribution.tile_sum[drawn.row * drawn.distribution.tiles + tile];
  return drawn.record.total - row_scale(whole, drawn.record.exponent, drawn.exponent(tile)) + drawn.mass(tile);
}

// A token of the row's distribution, `excluded` (DRAFTPROOF_NO_TOKEN: none) left out: the residual of a one-hot
// proposal. Where nothing else has mass it is `excluded` itself. Of a greedy row it is its token. The row's status must
// be 0. Every thread gets the token.
__device__ inline Token draw_by_inverse_mass(const LogitsDistribution& distribution, std::int64_t row,
                                             const RandomBlock& block, Token excluded = DRAFTPROOF_NO_TOKEN) {
  const DrawnRow drawn = drawn_row(distribution, row, excluded);
  if (drawn.record.greedy_token != DRAFTPROOF_NO_TOKEN) return drawn.record.greedy_token;
  const std::uint64_t total = total_of(drawn);
  if (total == 0) return excluded;
  constexpr int kCount = 8;
  const std::uint64_t mass_of_own_tile = threadIdx.x < distribution.tiles ? drawn.mass(threadIdx.x) : 0;
  const std::int32_t tile = draw_tile(mass_of_own_tile, total, block);
  const std::int32_t exponent = drawn.exponent(tile);
  const float temperature = distribution.temperature_of(row);
  return draw_in_tile<kCount>(tile, drawn.sum(tile), block, [&](std::int64_t column, std::uint64_t(&mass)[kCount]) {
    float x[kCount];
    load_row(distribution.logits, row, column, distribution.vocab_size, negative_infinity(), x);
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float logit = over_temperature(x[i], temperature);
      mass[i] = column + i == excluded ? 0 : kept_mass_in_tile(drawn.record, logit, column + i, exponent);
    }
  });
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
