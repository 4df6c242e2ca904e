// A token of rows that lie on several devices (twin: reference_executor/shard.cpp over RowShard; as a whole
// ShardedMasses of reference/shard/sharded_masses.hpp).
//
//   inverse mass   stage 0: the share of each device of the drawn tile; stage 1: its owner finds the token
//   race           stage 0: the best score of each device; stage 1: the tokens that have it, of which the lowest wins
//   both           stage 2: token, log-probability, status
//
// Ladder (bytes that must move: one tile on the devices that hold some of it, twice where it is cut; of a race the
// device's logits once):
//   v1 (this)  a block a row; of a race a block a tile, the tiles of the whole row's race.
//   next: the share of stage 0 from the sums that shard_summarise wrote.
#pragma once

#include "gpu/kernels/race_tile.cuh"
#include "gpu/kernels/shard_rows.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct ShardDraw {
  ShardView shard;
  CombinedRows rows;
  Randomness random;
  bool is_race;
  std::int32_t stage;
  Global<const std::int64_t> combined;  // of the stage before
  Global<std::int64_t> winner;          // [rows, 2]: score, token
  Global<std::uint64_t> tile_score;     // [rows, tiles of the device]: winners of tiles
  Global<Token> tile_token;
  Global<std::int64_t> message;
  Global<Token> tokens;
  Global<float> logprobs;
  Global<std::int32_t> status;

  __device__ DistributionRow row_of(std::int64_t row) const {
    return combined_row(rows, row, shard.temperature_of(row));
  }
  static __device__ bool draws(const DistributionRow& record) {
    return record.status == DRAFTPROOF_ROW_OK && record.greedy_token == DRAFTPROOF_NO_TOKEN;
  }
};

// Scores of a race: as doubles, and below all others where no token takes part.
__device__ inline std::int64_t score_message(std::uint64_t score_key) {
  return static_cast<std::int64_t>(score_key ^ 0x8000000000000000ull);
}
struct LogitsOfShard {
  const ShardView& shard;
  std::int64_t row;

  __device__ void load(std::int64_t column, float (&x)[8]) const { shard.load(row, column, x); }
};

// Grid: rows * tiles of the device blocks.
__global__ void race_shard_tiles(ShardDraw d) {
  const std::int64_t row = blockIdx.x / static_cast<std::uint32_t>(d.shard.device_tiles);
  const std::int64_t local = blockIdx.x % static_cast<std::uint32_t>(d.shard.device_tiles);
  const std::int64_t tile = d.shard.first_tile + local;
  const DistributionRow record = d.row_of(row);
  const std::int64_t end = ShardDraw::draws(record) ? d.shard.end_in(tile) : 0;
  const auto racing = racing_tile(LogitsOfShard{d.shard, row}, record, d.random, row, row, d.rows.exponent(row, tile),
                                  d.shard.temperature_of(row));
  const Winner best = winner_of_tile(racing, d.shard.begin_in(tile) / ShardView::kCount * ShardView::kCount, end);
  if (threadIdx.x != 0) return;
  d.tile_score[row * d.shard.device_tiles + local] = best.score;
  d.tile_token[row * d.shard.device_tiles + local] = best.token;
}

// Where a row's draw by inverse mass falls: a tile, and the mass of it that stands before the token. By all threads.
struct DrawnPlace {
  std::int32_t tile;
  std::uint64_t before;
};
__device__ inline DrawnPlace place_of_draw(const ShardDraw& d, const DistributionRow& record, std::int64_t row) {
  const std::int64_t tiles = d.shard.tiles;
  const Address address{0, value_of<std::uint32_t>(d.random.row_in_step, row, 0),
                        value_of<std::uint32_t>(d.random.step, row, 0), static_cast<Purpose>(d.random.purpose)};
  const RandomBlock block = random_block(value_of<std::uint64_t>(d.random.seed, row, 0), address);
  const std::uint64_t sum_of_own =
      threadIdx.x < tiles ? static_cast<std::uint64_t>(d.rows.tile_sum[row * tiles + threadIdx.x]) : 0;
  const std::uint64_t mass_of_own =
      threadIdx.x < tiles ? row_scale(sum_of_own, record.exponent, d.rows.exponent(row, threadIdx.x)) : 0;
  const std::int32_t tile = draw_tile(mass_of_own, record.total, block);
  const std::uint64_t sum = block_broadcast(threadIdx.x == static_cast<std::uint32_t>(tile), sum_of_own);
  return {tile, multiply_high(low_half(block), sum)};
}

// W_i of the eight tokens from `column` on, 0 of those that the device does not hold or the filters dropped.
__device__ inline void masses_of_shard(const ShardDraw& d, const DistributionRow& record, std::int64_t row,
                                       std::int64_t column, std::uint64_t (&mass)[ShardView::kCount]) {
  float x[ShardView::kCount];
  d.shard.load(row, column, x);
  const std::int32_t exponent = d.rows.exponent(row, column / kTileTokens);
  DRAFTPROOF_UNROLL
  for (int i = 0; i < ShardView::kCount; ++i) {
    const float logit = over_temperature(x[i], d.shard.temperature_of(row));
    mass[i] = is_kept(record, logit, column + i, exponent) ? mass_in_tile(logit, exponent) : 0;
  }
}

__device__ inline void share_of_shard(const ShardDraw& d, const DistributionRow& record, std::int64_t row) {
  for (std::int64_t w = threadIdx.x; w < d.shard.devices; w += blockDim.x) d.message[row * d.shard.devices + w] = 0;
  __syncthreads();
  if (!ShardDraw::draws(record)) return;
  const DrawnPlace place = place_of_draw(d, record, row);
  if (d.shard.begin_in(place.tile) >= d.shard.end_in(place.tile)) return;
  std::uint64_t share = 0;
  d.shard.for_each(row, place.tile, [&](float x, std::int64_t token) {
    const std::int32_t exponent = d.rows.exponent(row, place.tile);
    if (is_kept(record, x, token, exponent)) share += mass_in_tile(x, exponent);
  });
  share = block_reduce(share, Sum{});
  if (threadIdx.x == 0) d.message[row * d.shard.devices + d.shard.device] = static_cast<std::int64_t>(share);
}

__device__ inline void race_of_shard(const ShardDraw& d, std::int64_t row) {
  Winner best{0, 0x7fffffff};
  for (std::int64_t t = threadIdx.x; t < d.shard.device_tiles; t += blockDim.x) {
    const std::uint64_t score = d.tile_score[row * d.shard.device_tiles + t];
    if (score > best.score) best = {score, d.tile_token[row * d.shard.device_tiles + t]};
  }
  best = block_winner(best);
  if (threadIdx.x != 0) return;
  d.winner[2 * row] = score_message(best.score);
  d.winner[2 * row + 1] = best.score == 0 ? DRAFTPROOF_NO_TOKEN : best.token;
  d.message[row] = score_message(best.score);
}

// The token that this device has drawn; DRAFTPROOF_NO_TOKEN where another one has. Every thread gets it.
__device__ inline Token token_of_shard(const ShardDraw& d, const DistributionRow& record, std::int64_t row) {
  if (d.is_race) {
    const std::int64_t score = d.winner[2 * row];
    const std::int64_t token = d.winner[2 * row + 1];
    return score == d.combined[row] ? static_cast<Token>(token) : DRAFTPROOF_NO_TOKEN;
  }
  const DrawnPlace place = place_of_draw(d, record, row);
  const OwnShare own = own_share(d.shard, d.combined, row, place.before);
  if (!own.is_here) return DRAFTPROOF_NO_TOKEN;
  return token_of_tile<ShardView::kCount>(place.tile, own.left,
                                          [&](std::int64_t column, std::uint64_t(&mass)[ShardView::kCount]) {
                                            DRAFTPROOF_UNROLL
                                            for (std::uint64_t& m : mass) m = 0;
                                            if (column + ShardView::kCount > d.shard.begin && column < d.shard.end)
                                              masses_of_shard(d, record, row, column, mass);
                                          });
}

inline constexpr std::uint32_t kShardDrawThreads = 256;  // at least the devices, and the tiles

// Grid: rows blocks of kShardDrawThreads.
__global__ void draw_shard_rows(ShardDraw d) {
  const std::int64_t row = blockIdx.x;
  const DistributionRow record = d.row_of(row);
  if (d.stage == 0) return d.is_race ? race_of_shard(d, row) : share_of_shard(d, record, row);
  if (d.stage == 1) {
    const Token token = ShardDraw::draws(record) ? token_of_shard(d, record, row) : DRAFTPROOF_NO_TOKEN;
    if (threadIdx.x != 0) return;
    if (token == DRAFTPROOF_NO_TOKEN) {
      d.message[row] = kNobody;
      return;
    }
    const float x =
        over_temperature(element_at(d.shard.logits, row, token - d.shard.begin), d.shard.temperature_of(row));
    d.message[row] = drawn_message(token, log_probability_of(x, record.exponent, log_total(record.total)));
    return;
  }
  if (threadIdx.x != 0) return;
  d.status[row] = record.status;
  d.tokens[row] = DRAFTPROOF_NO_TOKEN;
  d.logprobs[row] = negative_infinity();
  if (record.status != DRAFTPROOF_ROW_OK) return;
  if (record.greedy_token != DRAFTPROOF_NO_TOKEN) {
    d.tokens[row] = record.greedy_token;
    d.logprobs[row] = 0.0f;
    return;
  }
  const std::int64_t drawn = d.combined[row];
  d.tokens[row] = -1 - static_cast<Token>(drawn >> 32);
  d.logprobs[row] = bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(drawn)));
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
