// A token of a row's law by inverse mass, all threads of a block together (twin: Distribution::draw).
//
// The high half of a random block picks the tile by the tiles' masses M_t in the scale of the row, the low half the
// token inside it by W_i: one scan over at most 128 tiles and one over 4,096 tokens, whatever the vocabulary.
#pragma once

#include <cstdint>

#include "gpu/kernels/row_reader.cuh"
#include "reference/random/philox.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

__device__ inline RandomBlock random_block(std::uint64_t seed, const Address& a) {
  return philox_block(seed, a.index, a.row, a.step, static_cast<std::uint32_t>(a.purpose));
}

// W_i of a token, 0 where it is masked or was dropped.
__device__ inline std::uint64_t kept_mass_in_tile(const LawRow& row, float x, std::int64_t token,
                                                  std::int32_t tile_exponent) {
  return is_kept(row, x, token, tile_exponent) ? mass_in_tile(x, tile_exponent) : 0;
}

// The tiles of a row with the mass of one token taken out.
struct DrawnRow {
  const LogitsLaw& law;
  std::int64_t row;
  LawRow record;
  Token excluded;  // DRAFTPROOF_NO_TOKEN: none
  std::uint64_t excluded_mass;

  __device__ std::int32_t exponent(std::int64_t tile) const { return law.tile_exponent[row * law.tiles + tile]; }
  __device__ std::uint64_t sum(std::int64_t tile) const {
    const std::uint64_t whole = law.tile_sum[row * law.tiles + tile];
    return excluded >= 0 && tile == excluded / kTileTokens ? whole - excluded_mass : whole;
  }
  __device__ std::uint64_t mass(std::int64_t tile) const {
    return row_scale(sum(tile), record.exponent, exponent(tile));
  }
};

__device__ inline DrawnRow drawn_row(const LogitsLaw& law, std::int64_t row, Token excluded) {
  DrawnRow out{law, row, law.rows[row], excluded, 0};
  if (excluded < 0) return out;
  out.excluded_mass = kept_mass_in_tile(out.record, processed_logit(law, row, excluded), excluded,
                                        out.exponent(excluded / kTileTokens));
  return out;
}

// S with the excluded token's mass taken out; every thread gets it.
__device__ inline std::uint64_t total_of(const DrawnRow& drawn) {
  if (drawn.excluded < 0) return drawn.record.total;
  const std::int64_t tile = drawn.excluded / kTileTokens;
  const std::uint64_t whole = drawn.law.tile_sum[drawn.row * drawn.law.tiles + tile];
  return drawn.record.total - row_scale(whole, drawn.record.exponent, drawn.exponent(tile)) + drawn.mass(tile);
}

struct DrawnTile {
  std::int64_t tile;
  std::uint64_t sum;
};

// The tile that holds `left` of the row's mass.
__device__ inline DrawnTile tile_at(const DrawnRow& drawn, std::uint64_t left) {
  for (std::int64_t begin = 0;; begin += blockDim.x) {
    const std::int64_t tile = begin + threadIdx.x;
    const std::uint64_t mass = tile < drawn.law.tiles ? drawn.mass(tile) : 0;
    const Scanned<std::uint64_t> masses = block_scan(mass);
    if (left < masses.total || begin + blockDim.x >= drawn.law.tiles) {
      const bool is_here = left >= masses.before && left - masses.before < mass;
      return block_broadcast(is_here, DrawnTile{tile, is_here ? drawn.sum(tile) : 0});
    }
    left -= masses.total;
  }
}

// The token that holds `left` of the tile's mass.
__device__ inline Token token_at(const DrawnRow& drawn, std::int64_t tile, std::uint64_t left) {
  constexpr int kCount = 8;
  const LogitsLaw& law = drawn.law;
  const float temperature = law.temperature_of(drawn.row);
  const std::int32_t exponent = drawn.exponent(tile);
  for (std::int64_t begin = 0;; begin += blockDim.x * kCount) {
    const std::int64_t column = tile * kTileTokens + begin + threadIdx.x * kCount;
    float x[kCount];
    load_row(law.logits, drawn.row, column, law.vocab_size, negative_infinity(), x);
    std::uint64_t mass[kCount];
    std::uint64_t own = 0;
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      mass[i] = column + i == drawn.excluded
                    ? 0
                    : kept_mass_in_tile(drawn.record, over_temperature(x[i], temperature), column + i, exponent);
      own += mass[i];
    }
    const Scanned<std::uint64_t> masses = block_scan(own);
    if (left < masses.total || begin + blockDim.x * kCount >= kTileTokens) {
      const bool is_here = left >= masses.before && left - masses.before < own;
      std::uint64_t rest = left - masses.before;
      Token token = static_cast<Token>(column);
      DRAFTPROOF_UNROLL
      for (int i = 0; i < kCount; ++i) {
        if (rest < mass[i]) break;
        rest -= mass[i];
        ++token;
      }
      return block_broadcast(is_here, token);
    }
    left -= masses.total;
  }
}

// A token of the row's law, `excluded` (DRAFTPROOF_NO_TOKEN: none) left out: the residual of a one-hot proposal. Where
// nothing else has mass it is `excluded` itself. Of a greedy row it is its token. The row's status must be 0. Every
// thread gets the token.
__device__ inline Token draw_by_inverse_mass(const LogitsLaw& law, std::int64_t row, const RandomBlock& block,
                                             Token excluded = DRAFTPROOF_NO_TOKEN) {
  const DrawnRow drawn = drawn_row(law, row, excluded);
  if (drawn.record.greedy_token != DRAFTPROOF_NO_TOKEN) return drawn.record.greedy_token;
  const std::uint64_t total = total_of(drawn);
  if (total == 0) return excluded;
  const DrawnTile tile = tile_at(drawn, multiply_high(high_half(block), total));
  return token_at(drawn, tile.tile, multiply_high(low_half(block), tile.sum));
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
