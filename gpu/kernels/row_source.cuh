// The distribution of a row, whatever it came from (twin: reference/sampling/distribution.hpp): a row of probabilities
// that is taken as it is, or a row of logits after the pipeline. Verifiers ask for single probabilities, and read rows
// whole in chunks of eight tokens.
#pragma once

#include <cstdint>

#include "gpu/kernels/distribution.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Elements that one thread reads at a time: 16 bytes of a 16-bit type, 32 of f32.
inline constexpr int kChunk = 8;

// The bits of eight elements, not converted yet, so that the loads of two rows can be under way together.
struct RawChunk {
  std::uint32_t word[kChunk];
};

template <class Element>
__device__ inline void load_raw(Global<const Element> data, std::int64_t at, std::int64_t available, bool vectors,
                                RawChunk& out) {
  constexpr int kWidth = Vector<Element>::kCount;
  constexpr int kPerWord = 4 / static_cast<int>(sizeof(Element));
  struct Words {
    std::uint32_t word[4];
  };
  if (vectors && available >= kChunk) {
    const auto quads = view_as<const Vector<Element>>(data + at);
    DRAFTPROOF_UNROLL
    for (int v = 0; v < kChunk / kWidth; ++v) {
      const Vector<Element> loaded = quads[v];
      const Words words = bit_cast<Words>(loaded);
      DRAFTPROOF_UNROLL
      for (int w = 0; w < 4; ++w) out.word[v * 4 + w] = words.word[w];
    }
    return;
  }
  DRAFTPROOF_UNROLL
  for (int w = 0; w < kChunk; ++w) out.word[w] = 0;
  DRAFTPROOF_UNROLL
  for (int e = 0; e < kChunk; ++e) {
    if (e >= available) continue;
    const Element x = data[at + e];
    if constexpr (kPerWord == 1) {
      out.word[e] = bit_cast<std::uint32_t>(x);
    } else {
      out.word[e / 2] |= static_cast<std::uint32_t>(x.bits) << (e % 2 * 16);
    }
  }
}

// Tokens [column, column + kChunk) of a row; 0 bits where there are none.
__device__ inline RawChunk load_raw(const RowsView& rows, std::int64_t row, std::int64_t column,
                                    std::int64_t vocab_size) {
  RawChunk out;
  const std::int64_t at = row * rows.row_stride + column;
  const std::int64_t available = vocab_size - column;
  const bool vectors = rows.aligned != 0;  // column is a multiple of kChunk
  if (rows.dtype == DRAFTPROOF_F32) {
    load_raw(rows.f32, at, available, vectors, out);
  } else if (rows.dtype == DRAFTPROOF_F16) {
    load_raw(rows.f16, at, available, vectors, out);
  } else {
    load_raw(rows.bf16, at, available, vectors, out);
  }
  return out;
}

__device__ inline void to_floats(const RawChunk& raw, std::int32_t dtype, float (&out)[kChunk]) {
  DRAFTPROOF_UNROLL
  for (int e = 0; e < kChunk; ++e) {
    const auto half = static_cast<std::uint16_t>(raw.word[e / 2] >> (e % 2 * 16));
    if (dtype == DRAFTPROOF_F32) {
      out[e] = bit_cast<float>(raw.word[e]);
    } else {
      out[e] = dtype == DRAFTPROOF_F16 ? f16_to_f32(half) : bf16_to_f32(half);
    }
  }
}

// f 2^k for f in [0.5, 2) and k in [-2^31, 0], rounded once: the bits of scale_by_power_of_two without double
// precision. f 2^(k + 64) is a normal number, and the product with 2^-64 rounds it, to a subnormal or to 0 where it
// must.
__device__ inline float scale_down_to(float f, std::int32_t k) {  // k at least -160
  return bit_cast<float>(bit_cast<std::uint32_t>(f) + (static_cast<std::uint32_t>(k + 64) << 23)) * 0x1p-64f;
}
__device__ inline float scale_down(float f, std::int32_t k) {
  constexpr std::int32_t kLowest = -160;  // the result is 0 from -151 on
  return scale_down_to(f, k < kLowest ? kLowest : k);
}

// A source of rows, by what it is: a draftproof_distribution_kind.
//   Row                           what is the same for all tokens of a row; open(row) reads it
//   status(row)                   draftproof_row_status, as far as it is known before elements are looked at
//   probability(row, token)       of one token, unchecked
//   log_probability(row, token)   natural log; -infinity for probability 0
//   probabilities(row, raw, column, out)   of a chunk; 0 beyond the vocabulary
template <int kKind>
struct RowSource;

// A one-hot proposal has no rows: its token is the draft.
template <>
struct RowSource<DRAFTPROOF_ONE_HOT> {
  static constexpr int kKind = DRAFTPROOF_ONE_HOT;
  struct Row {};
};

template <>
struct RowSource<DRAFTPROOF_PROBABILITIES> {
  static constexpr int kKind = DRAFTPROOF_PROBABILITIES;
  RowsView rows;
  std::int64_t vocab_size;

  struct Row {};

  __device__ const RowsView& elements() const { return rows; }
  __device__ Row open(std::int64_t) const { return {}; }
  __device__ std::int32_t status(std::int64_t) const { return DRAFTPROOF_ROW_OK; }
  __device__ float probability(std::int64_t row, Token token) const { return element_at(rows, row, token); }
  __device__ float log_probability(std::int64_t row, Token token) const {
    const float p = probability(row, token);
    return p > 0.0f ? static_cast<float>(natural_log(static_cast<double>(p))) : negative_infinity();
  }
  __device__ void probabilities(const Row&, const RawChunk& raw, std::int64_t, float (&out)[kChunk]) const {
    to_floats(raw, rows.dtype, out);
  }
};

template <>
struct RowSource<DRAFTPROOF_LOGITS> {
  static constexpr int kKind = DRAFTPROOF_LOGITS;
  LogitsDistribution distribution;

  struct Row {
    DistributionRow record;
    float temperature;
    float reciprocal;
    Global<const std::int32_t> tile_exponent;
    bool plain;  // nothing was dropped, and every logit that has mass takes the float reduction of exp_parts
  };

  __device__ const RowsView& elements() const { return distribution.logits; }
  __device__ Row open(std::int64_t row) const {
    const DistributionRow record = distribution.rows[row];
    constexpr std::int32_t kPlainExponent = 90000;  // exponents of logits within kFastLimit
    const bool plain = record.greedy_token == DRAFTPROOF_NO_TOKEN && record.last_value == negative_infinity() &&
                       record.least_mass == 0 && record.exponent >= -kPlainExponent &&
                       record.exponent <= kPlainExponent;
    return {record, distribution.temperature_of(row), reciprocal_total(record.total),
            distribution.tile_exponent + row * distribution.tiles, plain};
  }
  __device__ std::int32_t status(std::int64_t row) const {
    const DistributionRow record = distribution.rows[row];
    return record.status;
  }
  __device__ float probability(std::int64_t row, Token token) const {
    return DRAFTPROOF_EXECUTOR::probability(distribution, row, token);
  }
  __device__ float log_probability(std::int64_t row, Token token) const {
    return DRAFTPROOF_EXECUTOR::log_probability(distribution, row, token);
  }
  __device__ void probabilities(const Row& row, const RawChunk& raw, std::int64_t column, float (&out)[kChunk]) const {
    to_floats(raw, distribution.logits.dtype, out);
    const DistributionRow& record = row.record;
    if (record.greedy_token != DRAFTPROOF_NO_TOKEN) {
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e) out[e] = column + e == record.greedy_token ? 1.0f : 0.0f;
      return;
    }
    if (row.temperature != 1.0f) {
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e) out[e] = out[e] / row.temperature;
    }
    if (row.plain && column + kChunk <= distribution.vocab_size) {
      // From 151 binary orders below the row's first on, p is 0: logits there, masked ones too, are raised to one.
      const float lowest = (static_cast<float>(record.exponent) - 155.0f) * exp_constants::kLn2High;
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e) {
        const ExpParts parts = exp_parts_in_float(out[e] > lowest ? out[e] : lowest);
        out[e] = scale_down_to(parts.f, parts.n - record.exponent) * row.reciprocal;
      }
      return;
    }
    if (record.least_mass > 0 && column < distribution.vocab_size) {
      const std::int32_t tile_exponent = row.tile_exponent[column / kTileTokens];
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e)
        if (kept_weight(record, out[e], column + e, tile_exponent) == 0.0f) out[e] = negative_infinity();
    }
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) {
      const float x = out[e];
      const bool dropped = x < record.last_value || (x == record.last_value && column + e > record.last_token);
      if (!(x >= -kLogitLimit) || dropped || column + e >= distribution.vocab_size) {
        out[e] = 0.0f;
      } else {
        const ExpParts parts = exp_parts(x);
        out[e] = scale_down(parts.f, parts.n - record.exponent) * row.reciprocal;
      }
    }
  }
};

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
