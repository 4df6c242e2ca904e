// Drawing by inverse mass, whatever the masses are: a random block's high half picks the tile, its low half the token
// inside it, each by one scan (twins: LogitsDistribution::draw, DifferenceMasses and
// reference/sampling/dense_draw.cpp).
#pragma once

#include <cstdint>

#include "base/token.hpp"
#include "gpu/kernels/block.cuh"
#include "reference/numerics/fixed_point.hpp"
#include "reference/random/address.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

__device__ inline RandomBlock random_block(std::uint64_t seed, const Address& a) {
  return philox_block(seed, a.index, a.row, a.step, static_cast<std::uint32_t>(a.purpose));
}

// The tile in which the running sum of tile_sum passes floor(r total / 2^64), where r is the block's high half; every
// thread gets it. At most as many tiles as threads; total is their sum and not 0.
__device__ inline std::int32_t draw_tile(std::uint64_t tile_sum_of_thread, std::uint64_t total,
                                         const RandomBlock& random) {
  const std::uint64_t target = multiply_high(high_half(random), total);
  const std::uint64_t before = block_scan(tile_sum_of_thread).before;
  const bool is_here = before <= target && target - before < tile_sum_of_thread;
  return block_broadcast(is_here, static_cast<std::int32_t>(threadIdx.x));
}

// The token of a tile at which the running sum of masses exceeds `left`. masses_at(column, out): the masses of kWidth
// tokens from `column` on, 0 where there are none.
template <int kWidth, class MassesAt>
__device__ inline Token token_of_tile(std::int64_t tile, std::uint64_t left, MassesAt masses_at) {
  for (std::int64_t first = 0; first < kTileTokens; first += static_cast<std::int64_t>(blockDim.x) * kWidth) {
    const std::int64_t column = tile * kTileTokens + first + threadIdx.x * kWidth;
    std::uint64_t mass[kWidth];
    masses_at(column, mass);
    std::uint64_t sum = 0;
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kWidth; ++e) sum += mass[e];
    const Scanned<std::uint64_t> scanned = block_scan(sum);
    if (left >= scanned.total) {
      left -= scanned.total;
      continue;
    }
    const bool is_here = scanned.before <= left && left - scanned.before < sum;
    std::uint64_t passed = scanned.before;
    std::int64_t token = column;
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      passed += mass[e];
      token += passed <= left ? 1 : 0;
    }
    return block_broadcast(is_here, static_cast<Token>(token));
  }
  return DRAFTPROOF_NO_TOKEN;  // not reached: the masses sum to more than `left`
}

// The token of a tile in which the running sum of masses passes floor(r tile_sum / 2^64), where r is the block's low
// half.
template <int kWidth, class MassesAt>
__device__ inline Token draw_in_tile(std::int64_t tile, std::uint64_t tile_sum, const RandomBlock& random,
                                     MassesAt masses_at) {
  return token_of_tile<kWidth>(tile, multiply_high(low_half(random), tile_sum), masses_at);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
