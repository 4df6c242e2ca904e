// The distributions of rows of logits in device memory, and what verifiers and samplers ask of them (twin:
// reference/sampling/logits_distribution.hpp). A distribution is the row's logits up to the temperature, the masses of
// its tiles, and one DistributionRow, which says what the filters kept.
#pragma once

#include <cstdint>

#include "gpu/kernels/mass_tile.cuh"
#include "gpu/kernels/row_requests.cuh"
#include "reference/random/uniform.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct DistributionRow {
  std::uint64_t total;             // S over the kept tokens
  std::uint64_t unfiltered_total;  // S of the whole row
  std::uint64_t least_mass;        // kept: m_i at least this ...
  float last_value;                // ... and not behind (last_value, last_token) in the total order ...
  Token last_token;
  Token first_token;        // ... and, where there is a least mass, none of the last value before it
  std::int32_t exponent;    // N
  Token greedy_token;       // of a greedy row, which is one-hot; else DRAFTPROOF_NO_TOKEN
  std::int32_t kept_count;  // of a filtered row; elsewhere it is not counted
  std::int32_t status;      // draftproof_row_status
};

// Unfiltered rows keep everything.
__device__ inline DistributionRow unfiltered_row() {
  DistributionRow row{};
  row.last_value = negative_infinity();
  row.last_token = 0x7fffffff;
  row.exponent = kMaskedExponent;
  row.greedy_token = DRAFTPROOF_NO_TOKEN;
  return row;
}

struct LogitsDistribution {
  RowsView logits;                  // [rows, vocab_size], before the division by the temperature
  Global<const float> temperature;  // [requests]; null: 1
  RowRequests row_requests;
  Global<const std::uint64_t> tile_sum;      // [rows, tiles], over the kept tokens
  Global<const std::int32_t> tile_exponent;  // [rows, tiles], of the unfiltered row
  Global<const DistributionRow> rows;        // [rows]
  std::int64_t vocab_size;
  std::int64_t tiles;

  __device__ std::int64_t request_of(std::int64_t row) const { return row_requests.of(row); }
  __device__ float temperature_of(std::int64_t row) const {
    return temperature == nullptr ? 1.0f : static_cast<float>(temperature[request_of(row)]);
  }
};

// Does a row with a least mass drop a token of mass m_i?
__device__ inline bool is_too_small(const DistributionRow& row, float x, std::int64_t token, std::uint64_t mass) {
  return mass < row.least_mass ||
         (x == row.last_value && static_cast<std::uint32_t>(token) < static_cast<std::uint32_t>(row.first_token));
}

// The weight f 2^(n - N_t) of a token with processed logit x; 0 if it is masked or was dropped.
__device__ inline float kept_weight(const DistributionRow& row, float x, std::int64_t token,
                                    std::int32_t tile_exponent) {
  const float weight = tile_weight(exp_parts(x), tile_exponent);
  if (weight == 0.0f) return 0.0f;
  if (x < row.last_value || (x == row.last_value && token > row.last_token)) return 0.0f;
  if (row.least_mass > 0 && is_too_small(row, x, token, row_scale(mass_of_weight(weight), row.exponent, tile_exponent)))
    return 0.0f;
  return weight;
}

// p of one token.
__device__ inline float probability_in(const DistributionRow& row, float x, std::int64_t token,
                                       std::int32_t tile_exponent, float reciprocal) {
  if (row.greedy_token != DRAFTPROOF_NO_TOKEN) return token == row.greedy_token ? 1.0f : 0.0f;
  if (kept_weight(row, x, token, tile_exponent) == 0.0f) return 0.0f;
  return probability_of(exp_parts(x), row.exponent, reciprocal);
}

__device__ inline float processed_logit(const LogitsDistribution& distribution, std::int64_t row, std::int64_t token) {
  return over_temperature(element_at(distribution.logits, row, token), distribution.temperature_of(row));
}

__device__ inline float probability(const LogitsDistribution& distribution, std::int64_t row, std::int64_t token) {
  const DistributionRow record = distribution.rows[row];
  const std::int32_t tile_exponent = distribution.tile_exponent[row * distribution.tiles + token / kTileTokens];
  return probability_in(record, processed_logit(distribution, row, token), token, tile_exponent,
                        reciprocal_total(record.total));
}

// Natural log of the probability; -infinity for a dropped token.
__device__ inline float log_probability(const LogitsDistribution& distribution, std::int64_t row, std::int64_t token) {
  const DistributionRow record = distribution.rows[row];
  if (record.greedy_token != DRAFTPROOF_NO_TOKEN) return token == record.greedy_token ? 0.0f : negative_infinity();
  const float x = processed_logit(distribution, row, token);
  const std::int32_t tile_exponent = distribution.tile_exponent[row * distribution.tiles + token / kTileTokens];
  if (kept_weight(record, x, token, tile_exponent) == 0.0f) return negative_infinity();
  return log_probability_of(x, record.exponent, log_total(record.total));
}

// A tile that is refused says why in place of its exponent.
inline constexpr std::int32_t kRefusedTile = 1 << 30;

// One row from its tiles, by all threads of the block; every thread gets it. The exponents of a row that is refused are
// set to kMaskedExponent and its sums to 0. refused: the status of a row that something else speaks against already.
__device__ inline DistributionRow row_of_tiles(std::int64_t row, std::int64_t tiles, float temperature,
                                               std::int32_t refused, Global<std::uint64_t> tile_sum,
                                               Global<std::int32_t> tile_exponent) {
  DistributionRow out = unfiltered_row();
  std::int32_t exponent = kMaskedExponent;
  std::int32_t status = DRAFTPROOF_ROW_OK;
  std::uint64_t first = 0;
  for (std::int64_t t = threadIdx.x; t < tiles; t += blockDim.x) {
    const std::int32_t n = tile_exponent[row * tiles + t];
    const std::uint64_t sum = tile_sum[row * tiles + t];
    if (n >= kRefusedTile) {
      status = n - kRefusedTile > status ? n - kRefusedTile : status;
    } else {
      exponent = n > exponent ? n : exponent;
      first = sum > first ? sum : first;
    }
  }
  out.exponent = block_reduce(exponent, Max{});
  out.status = block_reduce(status, Max{});
  const bool greedy = temperature == 0.0f;
  if (refused != DRAFTPROOF_ROW_OK) out.status = refused;
  if (greedy) {
    first = block_reduce(first, Max{});
    if (out.status == DRAFTPROOF_ROW_OK && first == 0) out.status = DRAFTPROOF_ROW_NOTHING_LEFT;
    if (out.status == DRAFTPROOF_ROW_OK) {
      out.greedy_token = token_of_packed(first);
      out.kept_count = 1;
    }
  } else if (out.status == DRAFTPROOF_ROW_OK && out.exponent == kMaskedExponent) {
    out.status = DRAFTPROOF_ROW_NOTHING_LEFT;
  }
  std::uint64_t total = 0;
  for (std::int64_t t = threadIdx.x; t < tiles; t += blockDim.x) {
    if (out.status != DRAFTPROOF_ROW_OK || greedy) {
      tile_sum[row * tiles + t] = 0;
      tile_exponent[row * tiles + t] = kMaskedExponent;
    } else {
      const std::uint64_t sum = tile_sum[row * tiles + t];
      total += row_scale(sum, out.exponent, tile_exponent[row * tiles + t]);
    }
  }
  out.total = block_reduce(total, Sum{});
  out.unfiltered_total = out.total;
  if (out.status != DRAFTPROOF_ROW_OK) out.exponent = kMaskedExponent;
  return out;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
