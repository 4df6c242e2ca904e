// Products with float activations in vectors: a group of weights is decoded once and serves all rows.
// Read once per instruction set by transformer_kernels_simd.cpp: the guard turns with every pass of hwy/foreach_target.
#if defined(DRAFTPROOF_TRANSFORMER_SIMD_FLOAT_PRODUCT_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAFTPROOF_TRANSFORMER_SIMD_FLOAT_PRODUCT_TOGGLE
#undef DRAFTPROOF_TRANSFORMER_SIMD_FLOAT_PRODUCT_TOGGLE
#else
#define DRAFTPROOF_TRANSFORMER_SIMD_FLOAT_PRODUCT_TOGGLE
#endif

#include "engine/transformer/simd_lanes.hpp"

#if DRAFTPROOF_TRANSFORMER_TARGET
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

HWY_INLINE LaneVector load_scale(const std::byte* scales, int scale_bytes, std::size_t index) {
  if (scale_bytes == 4) return hn::LoadU(LaneTag(), reinterpret_cast<const float*>(scales) + index);
  return load_f16(reinterpret_cast<const std::uint16_t*>(scales) + index);
}

// out [32][16]: the weights of a block of a quantised group, of 16 rows.
HWY_INLINE void decode_block(const PackedLayout& layout, const std::byte* scales, const std::byte* codes, float* out) {
  const LaneTag d;
  const LaneIntTag di;
  const std::size_t halves = layout.halves ? 2 : 1;
  const auto offset = hn::Set(di, layout.offset);
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::size_t lane = v * kVectorLanes;
    LaneVector scale[2];
    LaneVector min[2];
    for (std::size_t h = 0; h < 2; ++h) {
      const std::size_t which = h % halves;
      scale[h] = load_scale(scales, layout.scale_bytes, which * 16 + lane);
      min[h] = layout.has_min ? load_scale(scales, layout.scale_bytes, (halves + which) * 16 + lane) : hn::Zero(d);
    }
    const auto put = [&](std::size_t column, hn::Vec<LaneIntTag> code) HWY_ATTR {
      const std::size_t h = column / 16;
      const LaneVector number = hn::ConvertTo(d, hn::Sub(code, offset));
      const LaneVector value = layout.has_min ? hn::MulAdd(scale[h], number, min[h]) : hn::Mul(scale[h], number);
      hn::StoreU(value, d, out + column * 16 + lane);
    };
    const std::size_t parts = layout.code_bits == 4 ? 4 : 8;
    for (std::size_t p = 0; p < parts; ++p) {
      auto word = hn::LoadU(di, reinterpret_cast<const std::int32_t*>(codes) + p * 16 + lane);
      for (std::size_t i = 0; i < 4; ++i) {
        if (parts == 4) {
          put(p * 4 + i, hn::And(word, hn::Set(di, 15)));
          put(16 + p * 4 + i, hn::And(hn::ShiftRight<4>(word), hn::Set(di, 15)));
        } else {
          put(p * 4 + i, hn::And(word, hn::Set(di, 255)));
        }
        word = hn::ShiftRight<8>(word);
      }
    }
  }
}

// out [columns][16]: the weights of a group.
HWY_INLINE void decode_group(const PackedMatrix& matrix, std::int64_t g, float* out) {
  const LaneTag d;
  const PackedLayout layout = layout_of(matrix.format());
  const auto blocks = static_cast<std::size_t>(matrix.blocks());
  const std::byte* const group = matrix.group(g);
  if (layout.quantised()) {
    for (std::size_t b = 0; b < blocks; ++b)
      decode_block(layout, group + b * layout.scale_bytes_of_block(),
                   group + layout.codes_at(blocks) + b * layout.code_bytes_of_block(), out + b * 512);
    return;
  }
  for (std::size_t i = 0; i < blocks * 512; i += kVectorLanes) {
    if (matrix.format() == PackedFormat::bf16) {
      const ShortTag d16;
      const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(group) + i);
      hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(LaneWordTag(), bits))), d, out + i);
    } else {
      hn::StoreU(load_scale(group, layout.scale_bytes, i), d, out + i);
    }
  }
}

// kRows rows of x times decoded weights [blocks * 32][16].
template <std::size_t kRows>
HWY_INLINE void rows_times(const float* weights, std::size_t blocks, const float* x, std::size_t x_stride, float* out,
                           std::size_t out_stride) {
  const LaneTag d;
  for (std::size_t v = 0; v < kVectors; ++v) {
    LaneVector acc[kRows];
    for (LaneVector& a : acc) a = hn::Zero(d);
    for (std::size_t b = 0; b < blocks; ++b) {
      LaneVector t[kRows];
      for (LaneVector& a : t) a = hn::Zero(d);
      for (std::size_t k = b * 32; k < b * 32 + 32; ++k) {
        const LaneVector w = hn::LoadU(d, weights + k * 16 + v * kVectorLanes);
        for (std::size_t m = 0; m < kRows; ++m) t[m] = hn::MulAdd(w, hn::Set(d, x[m * x_stride + k]), t[m]);
      }
      for (std::size_t m = 0; m < kRows; ++m) acc[m] = hn::Add(acc[m], t[m]);
    }
    for (std::size_t m = 0; m < kRows; ++m) hn::StoreU(acc[m], d, out + m * out_stride + v * kVectorLanes);
  }
}

void float_product(const ProductPart& part, const float* x, std::size_t x_stride, int rows) {
  const auto blocks = static_cast<std::size_t>(part.weights->blocks());
  thread_local std::vector<float> weights;
  weights.resize(blocks * 512);
  for (std::int64_t g = part.group_begin; g < part.group_end; ++g) {
    decode_group(*part.weights, g, weights.data());
    float* const out = part.out + g * 16;
    auto left = static_cast<std::size_t>(rows);
    for (std::size_t m = 0; left > 0;) {
      const float* const from = x + m * x_stride;
      float* const to = out + m * part.out_stride;
      const std::size_t now = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
      if (now == 6) rows_times<6>(weights.data(), blocks, from, x_stride, to, part.out_stride);
      if (now == 4) rows_times<4>(weights.data(), blocks, from, x_stride, to, part.out_stride);
      if (now == 2) rows_times<2>(weights.data(), blocks, from, x_stride, to, part.out_stride);
      if (now == 1) rows_times<1>(weights.data(), blocks, from, x_stride, to, part.out_stride);
      m += now;
      left -= now;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();
#endif

#endif
