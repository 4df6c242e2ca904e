// The part of rows that one device holds, and what every device knows of a row once messages are combined (twin:
// reference/shard/row_shard.hpp). Columns count from the first token of the row, so that tiles and noise stand where
// the whole row has them; tokens of other devices are -infinity.
#pragma once

#include "gpu/kernels/parameters.cuh"
#include "gpu/kernels/row_reader.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct ShardView {
  RowsView logits;                  // [rows, end - begin]
  Global<const float> temperature;  // [rows]; null: 1
  std::int64_t vocab_size;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t tiles;         // of the whole row
  std::int64_t first_tile;    // that the device has tokens of
  std::int64_t device_tiles;  // how many
  std::int32_t device;
  std::int32_t devices;

  static constexpr int kCount = 8;

  __device__ float temperature_of(std::int64_t row) const { return value_of(temperature, row, 1.0f); }
  // The device's tokens of a tile; none of a tile of others.
  __device__ std::int64_t begin_in(std::int64_t tile) const {
    return tile * kTileTokens > begin ? tile * kTileTokens : begin;
  }
  __device__ std::int64_t end_in(std::int64_t tile) const {
    return (tile + 1) * kTileTokens < end ? (tile + 1) * kTileTokens : end;
  }

  // Logits of the tokens from `column` on, a multiple of kCount, before the temperature.
  __device__ void load(std::int64_t row, std::int64_t column, float (&x)[kCount]) const {
    const std::int64_t at = row * logits.row_stride + column - begin;
    const bool vectors = logits.aligned != 0 && (column - begin) % kCount == 0;
    if (logits.dtype == DRAFTPROOF_F32) return load_from(logits.f32, at, column, vectors, x);
    if (logits.dtype == DRAFTPROOF_F16) return load_from(logits.f16, at, column, vectors, x);
    load_from(logits.bf16, at, column, vectors, x);
  }

  template <class Element>
  __device__ void load_from(Global<const Element> data, std::int64_t at, std::int64_t column, bool vectors,
                            float (&x)[kCount]) const {
    if (column >= begin) return load_elements(data, at, end - column, vectors, negative_infinity(), x);
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      x[i] = negative_infinity();
      if (column + i < begin || column + i >= end) continue;
      const Element element = data[at + i];
      x[i] = to_float(element);
    }
  }

  // visit(x, token) for the device's tokens of a tile that are not masked, x over the temperature; by all threads.
  template <class Visit>
  __device__ void for_each(std::int64_t row, std::int64_t tile, Visit visit) const {
    const float t = temperature_of(row);
    const std::int64_t last = end_in(tile);
    for (std::int64_t column = begin_in(tile) / kCount * kCount + threadIdx.x * kCount; column < last;
         column += blockDim.x * kCount) {
      float x[kCount];
      load(row, column, x);
      DRAFTPROOF_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const float logit = over_temperature(x[i], t);
        if (logit >= -kLogitLimit) visit(logit, column + i);
      }
    }
  }
};

inline constexpr std::int64_t kLargestTokens = kVocabularyLimit;
// As a message of 64 bits that grows along the total order, and back.
__device__ inline std::int64_t largest_of(std::uint64_t packed) {
  return packed == 0 ? -1
                     : static_cast<std::int64_t>(packed >> 32) * kLargestTokens + (kLargestTokens - 1) -
                           token_of_packed(packed);
}
__device__ inline float value_of_largest(std::int64_t largest) {
  return value_of_key(static_cast<std::uint32_t>(largest / kLargestTokens));
}
__device__ inline Token token_of_largest(std::int64_t largest) {
  return static_cast<Token>(kLargestTokens - 1 - largest % kLargestTokens);
}

// The messages of shard_prepare and shard_summarise, combined.
struct CombinedRows {
  Global<const std::int32_t> tile_exponent;  // [rows, tiles + 1]
  Global<const std::int64_t> largest;        // [rows]; null: not looked at
  Global<const std::uint64_t> tile_sum;      // [rows, tiles]; null: not looked at
  Global<const draftproof_shard_kept> kept;  // [rows]; null: all tokens
  std::int64_t tiles;

  __device__ std::int32_t exponent(std::int64_t row, std::int64_t tile) const {
    return tile_exponent[row * (tiles + 1) + tile];
  }
};

// A row as every device knows it, by all threads of the block; every thread gets it.
__device__ inline DistributionRow combined_row(const CombinedRows& rows, std::int64_t row, float temperature) {
  DistributionRow out = unfiltered_row();
  std::int32_t exponent = kMaskedExponent;
  for (std::int64_t t = threadIdx.x; t < rows.tiles; t += blockDim.x) exponent = Max{}(exponent, rows.exponent(row, t));
  out.exponent = block_reduce(exponent, Max{});
  out.status = rows.exponent(row, rows.tiles);
  if (rows.kept != nullptr) {
    const draftproof_shard_kept kept = rows.kept[row];
    out.least_mass = kept.least_mass;
    out.last_value = kept.last_value;
    out.last_token = kept.last_token;
    out.status = Max{}(out.status, kept.status);
  }
  if (temperature == 0.0f && rows.largest != nullptr) {
    const std::int64_t largest = rows.largest[row];
    if (out.status == DRAFTPROOF_ROW_OK && largest < 0) out.status = DRAFTPROOF_ROW_NOTHING_LEFT;
    if (out.status == DRAFTPROOF_ROW_OK) out.greedy_token = token_of_largest(largest);
  } else if (temperature != 0.0f && out.status == DRAFTPROOF_ROW_OK && out.exponent == kMaskedExponent) {
    out.status = DRAFTPROOF_ROW_NOTHING_LEFT;
  }
  if (rows.tile_sum != nullptr) {
    std::uint64_t total = 0;
    for (std::int64_t t = threadIdx.x; t < rows.tiles; t += blockDim.x)
      total += row_scale(rows.tile_sum[row * rows.tiles + t], out.exponent, rows.exponent(row, t));
    out.total = block_reduce(total, Sum{});
  }
  return out;
}

inline constexpr std::int64_t kNobody = -0x7fffffffffffffff - 1;  // below every message of a maximum
// The lowest token is the largest message; its log-probability comes with it.
__device__ inline std::int64_t drawn_message(Token token, float logprob) {
  const auto complement = static_cast<std::uint32_t>(-1 - token);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(complement) << 32 | bit_cast<std::uint32_t>(logprob));
}

// Does the mass `before` of a tile, of combined shares [rows, devices], fall into this device's, and where in it?
// Every thread gets it. At least as many threads as devices.
struct OwnShare {
  bool is_here;
  std::uint64_t left;
};
__device__ inline OwnShare own_share(const ShardView& shard, Global<const std::int64_t> combined, std::int64_t row,
                                     std::uint64_t before) {
  const auto devices = static_cast<std::uint32_t>(shard.devices);
  const std::uint64_t own =
      threadIdx.x < devices
          ? static_cast<std::uint64_t>(static_cast<std::int64_t>(combined[row * shard.devices + threadIdx.x]))
          : 0;
  const std::uint64_t passed = block_scan(own).before;
  const bool is_here = passed <= before && before - passed < own;
  if (!block_any(is_here && threadIdx.x == static_cast<std::uint32_t>(shard.device))) return {false, 0};
  return {true, block_broadcast(is_here, before - passed)};
}

inline ShardView view_of(OperationMemory& memory, const draftproof_shard& shard) {
  ShardView view{};
  view.vocab_size = shard.vocab_size;
  view.begin = shard.begin;
  view.end = shard.end;
  view.tiles = (shard.vocab_size + kTileTokens - 1) / kTileTokens;
  view.first_tile = shard.begin / kTileTokens;
  view.device_tiles = shard.begin == shard.end ? 0 : (shard.end - 1) / kTileTokens - view.first_tile + 1;
  view.device = shard.device;
  view.devices = shard.devices;
  view.temperature = memory.input("temperature", shard.temperature, shard.rows);
  if (view.device_tiles > 0)
    view.logits = DRAFTPROOF_EXECUTOR::view_of(memory, "logits", shard.logits, shard.rows, shard.end - shard.begin);
  return view;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
