// Elements of rows as floats, whatever they are stored as: f32, f16 or bf16, one by one or 16 bytes at a time.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "base/token.hpp"
#include "gpu/device.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

__device__ inline float negative_infinity() {
  return bit_cast<float>(0xff800000u);
}

__device__ inline float to_float(float x) {
  return x;
}
// f16_to_f32 in five instructions: the fields move into place, and a product with 2^112 mends the exponent's bias,
// exactly, for subnormals too. It leans on subnormals being kept, as they are in every kernel
// (cmake/draftproof_flags.cmake).
__device__ inline float to_float(Float16 x) {
  const std::uint32_t magnitude = x.bits & 0x7fffu;
  const std::uint32_t scaled = bit_cast<std::uint32_t>(bit_cast<float>(magnitude << 13) * 0x1p112f);
  const std::uint32_t bits = magnitude >= 0x7c00u ? 0x7f800000u | (magnitude & 0x3ffu) << 13 : scaled;
  return bit_cast<float>((x.bits & 0x8000u) << 16 | bits);
}
__device__ inline float to_float(BFloat16 x) {
  return bf16_to_f32(x.bits);
}

// 16 bytes of elements.
template <class Element>
struct alignas(16) Vector {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(Element));
  Element element[kCount];
};

// A matrix of rows of one element type. Only the pointer of that type is used.
struct RowsView {
  Global<const float> f32;
  Global<const Float16> f16;
  Global<const BFloat16> bf16;
  std::int64_t row_stride;
  std::int32_t dtype;    // draftproof_dtype
  std::int32_t aligned;  // every row begins at a multiple of 16 bytes

  template <class Element>
  __device__ Global<const Element> elements() const;
};
template <>
__device__ inline Global<const float> RowsView::elements<float>() const {
  return f32;
}
template <>
__device__ inline Global<const Float16> RowsView::elements<Float16>() const {
  return f16;
}
template <>
__device__ inline Global<const BFloat16> RowsView::elements<BFloat16>() const {
  return bf16;
}

// The view of `count` rows of vocab_size elements; absent rows give null pointers.
inline RowsView view_of(OperationMemory& memory, const char* name, const draftproof_rows& rows, std::int64_t count,
                        std::int64_t vocab_size) {
  RowsView view{};
  view.row_stride = rows.row_stride;
  view.dtype = rows.dtype;
  const std::int64_t bytes = rows.dtype == DRAFTPROOF_F32 ? 4 : 2;
  const auto address = reinterpret_cast<std::uintptr_t>(rows.data);
  view.aligned = address % 16 == 0 && rows.row_stride * bytes % 16 == 0 ? 1 : 0;
  const std::int64_t extent = count > 0 ? (count - 1) * rows.row_stride + vocab_size : 0;
  if (rows.dtype == DRAFTPROOF_F32) view.f32 = memory.input(name, static_cast<const float*>(rows.data), extent);
  if (rows.dtype == DRAFTPROOF_F16) view.f16 = memory.input(name, static_cast<const Float16*>(rows.data), extent);
  if (rows.dtype == DRAFTPROOF_BF16) view.bf16 = memory.input(name, static_cast<const BFloat16*>(rows.data), extent);
  return view;
}

__device__ inline float element_at(const RowsView& rows, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * rows.row_stride + column;
  if (rows.dtype == DRAFTPROOF_F32) return rows.f32[at];
  if (rows.dtype == DRAFTPROOF_F16) {
    const Float16 x = rows.f16[at];
    return to_float(x);
  }
  const BFloat16 x = rows.bf16[at];
  return to_float(x);
}

// kCount elements from `at` on, of which `available` exist; the others become `fill`. kCount: a multiple of 8.
// vectors: `at` lies at a multiple of 16 bytes.
template <class Element, int kCount>
__device__ inline void load_elements(Global<const Element> data, std::int64_t at, std::int64_t available, bool vectors,
                                     float fill, float (&out)[kCount]) {
  constexpr int kWidth = Vector<Element>::kCount;
  static_assert(kCount % kWidth == 0);
  if (vectors && available >= kCount) {
    const auto quads = view_as<const Vector<Element>>(data + at);
    DRAFTPROOF_UNROLL
    for (int v = 0; v < kCount / kWidth; ++v) {
      const Vector<Element> loaded = quads[v];
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kWidth; ++e) out[v * kWidth + e] = to_float(loaded.element[e]);
    }
    return;
  }
  DRAFTPROOF_UNROLL
  for (int i = 0; i < kCount; ++i) {
    out[i] = fill;
    if (i >= available) continue;
    const Element x = data[at + i];
    out[i] = to_float(x);
  }
}
// The same of a view whose element type is known at run time only.
template <int kCount>
__device__ inline void load_row(const RowsView& rows, std::int64_t row, std::int64_t column, std::int64_t vocab_size,
                                float fill, float (&out)[kCount]) {
  const std::int64_t at = row * rows.row_stride + column;
  const std::int64_t available = vocab_size - column;
  const bool vectors = rows.aligned != 0 && column % 8 == 0;
  if (rows.dtype == DRAFTPROOF_F32) return load_elements(rows.f32, at, available, vectors, fill, out);
  if (rows.dtype == DRAFTPROOF_F16) return load_elements(rows.f16, at, available, vectors, fill, out);
  load_elements(rows.bf16, at, available, vectors, fill, out);
}

// Eight floats to `at` and behind, of which `available` have a place. vectors: `at` lies at a multiple of 16 bytes.
__device__ inline void store_eight(Global<float> out, std::int64_t at, std::int64_t available, bool vectors,
                                   const float (&x)[8]) {
  if (vectors && available >= 8) {
    const auto quads = view_as<Vector<float>>(out + at);
    quads[0] = Vector<float>{{x[0], x[1], x[2], x[3]}};
    quads[1] = Vector<float>{{x[4], x[5], x[6], x[7]}};
    return;
  }
  DRAFTPROOF_UNROLL
  for (int i = 0; i < 8; ++i)
    if (i < available) out[at + i] = x[i];
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
