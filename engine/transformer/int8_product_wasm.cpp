// Products of int8 rows with WebAssembly's vectors of 128 bits. Codes are widened to 16 bits and multiplied in pairs.
// There is no fused multiply-add, and none is needed: a product of two binary32 is exact in binary64, and a sum rounded
// to binary64 and then to binary32 is the fused one unless it lies halfway between two binary32, which is looked for.
#include "engine/transformer/transformer_kernels.hpp"

#ifdef __wasm_simd128__

#include <wasm_simd128.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace draftproof {
namespace {

constexpr int kRowsAtOnce = 4;  // rows of activations that share a group's widened codes
constexpr int kFours = 4;       // vectors of four lanes that make up a group

// fma of each lane as std::fma gives it.
[[gnu::always_inline]] inline v128_t fused(v128_t a, v128_t b, v128_t c) {
  const auto upper = [](v128_t x) { return wasm_i32x4_shuffle(x, x, 2, 3, 2, 3); };
  const auto sum = [](v128_t x, v128_t y, v128_t z) {
    return wasm_f64x2_add(wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(x), wasm_f64x2_promote_low_f32x4(y)),
                          wasm_f64x2_promote_low_f32x4(z));
  };
  const v128_t low = sum(a, b, c);
  const v128_t high = sum(upper(a), upper(b), upper(c));
  const v128_t rest = wasm_i64x2_const_splat(0x1fffffff);
  const v128_t half = wasm_i64x2_const_splat(0x10000000);
  const v128_t halfway =
      wasm_v128_or(wasm_i64x2_eq(wasm_v128_and(low, rest), half), wasm_i64x2_eq(wasm_v128_and(high, rest), half));
  if (__builtin_expect(wasm_v128_any_true(halfway), 0)) {
    alignas(16) float x[4], y[4], z[4];
    wasm_v128_store(x, a);
    wasm_v128_store(y, b);
    wasm_v128_store(z, c);
    for (int i = 0; i < 4; ++i) z[i] = std::fma(x[i], y[i], z[i]);
    return wasm_v128_load(z);
  }
  return wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high), 0, 1, 4, 5);
}

// Four scales. Those of binary16 are finite: their bits, moved, are the number less its exponent's other bias.
template <PackedLayout kLayout>
[[gnu::always_inline]] inline v128_t scales_of(const std::byte* scales, int which, int four) {
  const std::byte* const at = scales + (which * 16 + four * 4) * kLayout.scale_bytes;
  if constexpr (kLayout.scale_bytes == 4) return wasm_v128_load(at);
  const v128_t bits = wasm_u32x4_load16x4(at);
  const v128_t sign = wasm_i32x4_shl(wasm_v128_and(bits, wasm_i32x4_const_splat(0x8000)), 16);
  const v128_t size = wasm_i32x4_shl(wasm_v128_and(bits, wasm_i32x4_const_splat(0x7fff)), 13);
  return wasm_v128_or(wasm_f32x4_mul(size, wasm_f32x4_const_splat(0x1p112f)), sign);
}

template <PackedLayout kLayout>
[[gnu::always_inline]] inline std::int32_t offset_of(const Int8Block& x, int half) {
  if constexpr (kLayout.offset == 8) return x.minus_8_sum;
  if constexpr (kLayout.offset == 128) return x.minus_128_sum;
  if constexpr (kLayout.offset == 32) return x.minus_32_half_sums[half];
  return 0;
}

// dot[m]: of four rows of weights, whose codes of part p lie at codes + 64 p, the products with the codes of row m of
// x; of formats with halves those of one half of the columns.
template <PackedLayout kLayout, int kRows>
[[gnu::always_inline]] inline void dots(v128_t (&dot)[kRows], const std::byte* codes, const Int8Block* x, int half) {
  v128_t two[2][kRows];  // sums of pairs, of the first two rows of weights and of the others
  for (auto& of : two)
    for (v128_t& sum : of) sum = wasm_i32x4_const_splat(0);
  const auto add = [&](v128_t bytes, int column) {
    const v128_t first = wasm_u16x8_extend_low_u8x16(bytes);
    const v128_t last = wasm_u16x8_extend_high_u8x16(bytes);
    for (int m = 0; m < kRows; ++m) {
      const v128_t q = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_splat(x[m].q + column));
      two[0][m] = wasm_i32x4_add(two[0][m], wasm_i32x4_dot_i16x8(first, q));
      two[1][m] = wasm_i32x4_add(two[1][m], wasm_i32x4_dot_i16x8(last, q));
    }
  };
  if constexpr (kLayout.code_bits == 4) {
    for (int p = 0; p < 4; ++p) {
      const v128_t both = wasm_v128_load(codes + p * 64);
      if (!kLayout.halves || half == 0) add(wasm_v128_and(both, wasm_i8x16_const_splat(15)), 4 * p);
      if (!kLayout.halves || half == 1) add(wasm_u8x16_shr(both, 4), 16 + 4 * p);
    }
  } else {
    const int begin = kLayout.halves ? half * 4 : 0;
    const int end = kLayout.halves ? begin + 4 : 8;
    for (int p = begin; p < end; ++p) add(wasm_v128_load(codes + p * 64), 4 * p);
  }
  for (int m = 0; m < kRows; ++m)
    dot[m] = wasm_i32x4_add(wasm_i32x4_shuffle(two[0][m], two[1][m], 0, 2, 4, 6),
                            wasm_i32x4_shuffle(two[0][m], two[1][m], 1, 3, 5, 7));
}

// The sums of a group for kRows rows of a tile from `first_row` on.
template <PackedFormat kFormat, int kRows>
void group_times(const std::byte* group, std::size_t blocks, const Int8Tile& tile, int first_row, float* out,
                 std::size_t out_stride) {
  constexpr PackedLayout kLayout = layout_of(kFormat);
  constexpr int kHalves = kLayout.halves ? 2 : 1;
  for (int four = 0; four < kFours; ++four) {
    const std::byte* scales = group;
    const std::byte* codes = group + kLayout.codes_at(blocks) + four * 16;
    const Int8Block* x = tile.blocks + first_row;
    v128_t sum[kRows];
    for (v128_t& s : sum) s = wasm_f32x4_const_splat(0.0f);
    for (std::size_t b = 0; b < blocks; ++b) {
      for (int half = 0; half < kHalves; ++half) {
        v128_t dot[kRows];
        dots<kLayout, kRows>(dot, codes, x, half);
        const v128_t d = scales_of<kLayout>(scales, half, four);
        for (int m = 0; m < kRows; ++m) {
          if constexpr (kLayout.offset != 0)
            dot[m] = wasm_i32x4_add(dot[m], wasm_i32x4_splat(offset_of<kLayout>(x[m], half)));
          sum[m] = fused(wasm_f32x4_convert_i32x4(dot[m]), wasm_f32x4_mul(d, wasm_f32x4_splat(x[m].scale)), sum[m]);
        }
        if constexpr (kLayout.has_min) {
          const v128_t minimum = scales_of<kLayout>(scales, kHalves + half, four);
          for (int m = 0; m < kRows; ++m)
            sum[m] = fused(minimum, wasm_f32x4_splat(kLayout.halves ? x[m].scaled_half_sums[half] : x[m].scaled_sum),
                           sum[m]);
        }
      }
      scales += kLayout.scale_bytes_of_block();
      codes += kLayout.code_bytes_of_block();
      x += tile.rows;
    }
    for (int m = 0; m < kRows; ++m)
      wasm_v128_store(out + static_cast<std::size_t>(first_row + m) * out_stride + four * 4, sum[m]);
  }
}

template <PackedFormat kFormat>
void product_of(const ProductPart& part, std::span<const Int8Tile> tiles) {
  constexpr std::array kByRows{group_times<kFormat, 1>, group_times<kFormat, 2>, group_times<kFormat, 3>,
                               group_times<kFormat, kRowsAtOnce>};
  const auto blocks = static_cast<std::size_t>(part.weights->blocks());
  for (std::int64_t g = part.group_begin; g < part.group_end; ++g)
    for (const Int8Tile& tile : tiles)
      for (int row = 0; row < tile.rows; row += kRowsAtOnce) {
        const int rows = std::min(kRowsAtOnce, tile.rows - row);
        kByRows[static_cast<std::size_t>(rows) - 1](
            part.weights->group(g), blocks, tile, row,
            part.out + static_cast<std::size_t>(tile.first_row) * part.out_stride + g * kGroupRows, part.out_stride);
      }
}

void int8_product_of_vectors(const ProductPart& part, std::span<const Int8Tile> tiles) {
  switch (part.weights->format()) {
    case PackedFormat::byte_scale:
      return product_of<PackedFormat::byte_scale>(part, tiles);
    case PackedFormat::nibble_scale:
      return product_of<PackedFormat::nibble_scale>(part, tiles);
    case PackedFormat::nibble_scale_min:
      return product_of<PackedFormat::nibble_scale_min>(part, tiles);
    case PackedFormat::nibble_wide_scale_min:
      return product_of<PackedFormat::nibble_wide_scale_min>(part, tiles);
    case PackedFormat::byte_wide_scale_min:
      return product_of<PackedFormat::byte_wide_scale_min>(part, tiles);
    case PackedFormat::byte_wide_half_scales:
      return product_of<PackedFormat::byte_wide_half_scales>(part, tiles);
    case PackedFormat::nibble_half_scales_min:
      return product_of<PackedFormat::nibble_half_scales_min>(part, tiles);
    default:
      return product_of<PackedFormat::byte_half_scales_min>(part, tiles);
  }
}

}  // namespace

Int8Product int8_product_wasm() {
  return int8_product_of_vectors;
}

}  // namespace draftproof

#else

namespace draftproof {

Int8Product int8_product_wasm() {
  return nullptr;
}

}  // namespace draftproof

#endif
