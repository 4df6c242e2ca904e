// The definition of every kernel of a forward pass: one lane after the other.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/dtype.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "reference/numerics/exp_parts.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kLanes = 16;

float sum_of_lanes(float* lanes) {
  for (std::size_t half = kLanes / 2; half >= 1; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

float limited_exp(float x) {
  if (x < -kExpLimit) x = -kExpLimit;
  if (x > kExpLimit) x = kExpLimit;
  if (std::isnan(x)) return x;
  const ExpParts parts = exp_parts(x);
  return parts.f * std::bit_cast<float>(static_cast<std::uint32_t>(parts.n + 127) << 23);
}

void quantise(const float* x, std::int64_t block_begin, std::int64_t block_end, const Int8Tile& tile, int row) {
  for (std::int64_t b = block_begin; b < block_end; ++b) {
    const float* const values = x + b * kBlockColumns;
    Int8Block& to = tile.blocks[b * tile.rows + row];
    std::uint32_t largest = 0;  // as bits, NaN is above infinity, and the order of a maximum does not matter
    for (std::int64_t i = 0; i < kBlockColumns; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu);
    const float amax = std::bit_cast<float>(largest);
    const bool finite = largest < 0x7f800000u;
    const float inverse = finite && amax > 1e-30f ? 127.0f / amax : 0.0f;
    const float d = !finite ? std::bit_cast<float>(0x7fc00000u) : inverse == 0.0f ? 0.0f : amax / 127.0f;
    std::int32_t sum[2] = {0, 0};
    for (std::int64_t i = 0; i < kBlockColumns; ++i) {
      to.q[i] = finite ? static_cast<std::int8_t>(std::nearbyint(values[i] * inverse)) : std::int8_t{0};
      sum[i / 16] += to.q[i];
    }
    to.scale = d;
    to.scaled_sum = d * static_cast<float>(sum[0] + sum[1]);
    to.minus_8_sum = -8 * (sum[0] + sum[1]);
    to.minus_128_sum = -128 * (sum[0] + sum[1]);
    for (std::size_t h = 0; h < 2; ++h) {
      to.scaled_half_sums[h] = d * static_cast<float>(sum[h]);
      to.minus_32_half_sums[h] = -32 * sum[h];
    }
  }
}

float scale_at(const std::byte* scales, int scale_bytes, std::size_t index) {
  if (scale_bytes == 4) {
    float value = 0.0f;
    std::memcpy(&value, scales + index * 4, 4);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, scales + index * 2, 2);
  return f16_to_f32(half);
}

// The code of a column less its offset.
std::int32_t code_at(const PackedLayout& layout, const std::byte* codes, std::size_t lane, std::size_t column) {
  const bool high = layout.code_bits == 4 && column >= 16;
  const std::size_t in_parts = high ? column - 16 : column;
  const int byte = std::to_integer<int>(codes[in_parts / 4 * 64 + lane * 4 + in_parts % 4]);
  return (layout.code_bits == 8 ? byte : (high ? byte >> 4 : byte & 15)) - layout.offset;
}

void int8_product(const ProductPart& part, std::span<const Int8Tile> tiles) {
  const PackedLayout layout = layout_of(part.weights->format());
  const auto blocks = static_cast<std::size_t>(part.weights->blocks());
  const std::size_t halves = layout.halves ? 2 : 1;
  const std::size_t half_columns = kBlockColumns / halves;
  for (std::int64_t g = part.group_begin; g < part.group_end; ++g) {
    const std::byte* const group = part.weights->group(g);
    for (const Int8Tile& tile : tiles) {
      const auto rows = static_cast<std::size_t>(tile.rows);
      for (std::size_t m = 0; m < rows; ++m) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          float acc = 0.0f;
          for (std::size_t b = 0; b < blocks; ++b) {
            const std::byte* const scales = group + b * layout.scale_bytes_of_block();
            const std::byte* const codes = group + layout.codes_at(blocks) + b * layout.code_bytes_of_block();
            const Int8Block& x = tile.blocks[b * rows + m];
            for (std::size_t h = 0; h < halves; ++h) {
              std::int32_t dot = 0;
              for (std::size_t k = h * half_columns; k < (h + 1) * half_columns; ++k)
                dot += code_at(layout, codes, lane, k) * x.q[k];
              const float d = scale_at(scales, layout.scale_bytes, h * kLanes + lane);
              acc = std::fma(static_cast<float>(dot), d * x.scale, acc);
              if (!layout.has_min) continue;
              const float minimum = scale_at(scales, layout.scale_bytes, (halves + h) * kLanes + lane);
              acc = std::fma(minimum, layout.halves ? x.scaled_half_sums[h] : x.scaled_sum, acc);
            }
          }
          part.out[(static_cast<std::size_t>(tile.first_row) + m) * part.out_stride +
                   static_cast<std::size_t>(g) * kLanes + lane] = acc;
        }
      }
    }
  }
}

void float_product(const ProductPart& part, const float* x, std::size_t x_stride, int rows) {
  const auto columns = static_cast<std::size_t>(part.weights->columns());
  std::vector<float> weights(columns);
  for (std::int64_t r = part.group_begin * kGroupRows; r < part.group_end * kGroupRows; ++r) {
    // Rows that pad the last group are zeros.
    std::fill(weights.begin(), weights.end(), 0.0f);
    if (r < part.weights->rows()) part.weights->decode_row(r, weights);
    for (std::size_t m = 0; m < static_cast<std::size_t>(rows); ++m) {
      float acc = 0.0f;
      for (std::size_t b = 0; b < columns; b += kBlockColumns) {
        float t = 0.0f;
        for (std::size_t k = b; k < b + kBlockColumns; ++k) t = std::fma(weights[k], x[m * x_stride + k], t);
        acc += t;
      }
      part.out[m * part.out_stride + static_cast<std::size_t>(r)] = acc;
    }
  }
}

void rms_norm(const float* x, const float* weight, std::size_t count, float epsilon, float* out) {
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < count; ++i) lanes[i % kLanes] = std::fma(x[i], x[i], lanes[i % kLanes]);
  const float s = sum_of_lanes(lanes);
  const float nan_of_infinity = s - s;  // NOLINT(misc-redundant-expression)
  const float r = 1.0f / std::sqrt(s / static_cast<float>(count) + epsilon) + nan_of_infinity;
  for (std::size_t i = 0; i < count; ++i) out[i] = (x[i] * r) * weight[i];
}

void swiglu(const float* gate, const float* up, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = (gate[i] / (1.0f + limited_exp(-gate[i]))) * up[i];
}

void add(float* x, const float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] += y[i];
}

void tile_scores(const float* queries, std::size_t query_stride, int num_queries, const std::uint16_t* key,
                 std::int64_t head_len, float* scores) {
  for (std::size_t j = 0; j < static_cast<std::size_t>(num_queries); ++j)
    for (std::size_t p = 0; p < kLanes; ++p) {
      float sum = 0.0f;
      for (std::size_t i = 0; i < static_cast<std::size_t>(head_len); ++i)
        sum = std::fma(queries[i * query_stride + j], f16_to_f32(key[i * kLanes + p]), sum);
      scores[j * kLanes + p] = sum;
    }
}

float softmax(float* scores, std::size_t first, std::size_t count, std::size_t tile_stride) {
  const auto at = [&](std::size_t p) -> float& { return scores[p / kLanes * tile_stride + p % kLanes]; };
  float largest = at(first);
  for (std::size_t p = first + 1; p < count; ++p) largest = std::max(largest, at(p));
  float lanes[kLanes] = {};
  std::fill_n(scores, first, 0.0f);
  for (std::size_t p = first; p < count; ++p) {
    at(p) = limited_exp(at(p) - largest);
    lanes[p % kLanes] += at(p);
  }
  for (std::size_t p = count; p % kLanes != 0; ++p) at(p) = 0.0f;
  return 1.0f / sum_of_lanes(lanes);
}

void tile_values(const float* weights, int num_queries, std::size_t count, const std::uint16_t* value,
                 std::int64_t head_len, float* out) {
  const auto head = static_cast<std::size_t>(head_len);
  for (std::size_t j = 0; j < static_cast<std::size_t>(num_queries); ++j)
    for (std::size_t p = 0; p < count; ++p)
      for (std::size_t i = 0; i < head; ++i)
        out[j * head + i] = std::fma(weights[j * kLanes + p], f16_to_f32(value[p * head + i]), out[j * head + i]);
}

void scale(const float* x, std::size_t count, float factor, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = x[i] * factor;
}

bool to_f16(const float* x, std::size_t count, std::uint16_t* out) {
  bool finite = true;
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = f32_to_f16(x[i]);
    finite = finite && (out[i] & 0x7c00u) != 0x7c00u;
  }
  return finite;
}

bool all_finite(const float* x, std::size_t count) {
  return std::all_of(x, x + count, [](float v) { return std::isfinite(v); });
}

}  // namespace

const TransformerKernels& scalar_transformer_kernels() {
  static constexpr TransformerKernels kernels{"scalar", quantise, int8_product, float_product, rms_norm,
                                              swiglu,   add,      tile_scores,  softmax,       tile_values,
                                              scale,    to_f16,   all_finite};
  return kernels;
}

}  // namespace draftproof
