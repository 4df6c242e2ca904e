// Products of int8 rows with vectors of 256 bits: 8 rows of weights are the lanes of a vector, and some rows of
// activations are accumulators. How bytes are multiplied differs by instruction set:
//
//   struct Dots {
//     static constexpr int kRowsAtOnce;  // rows of activations
//     // dot[m]: of the 8 rows of weights whose codes are at `codes`, the products with the codes at
//     // q + kBlockBytes m; of formats with halves those of one half of the columns.
//     template <PackedLayout kLayout, int kRows>
//     static void of(__m256i (&dot)[kRows], const std::byte* codes, const std::int8_t* q, int half);
//   };
//
// Included by files that have set the instruction set, so that each has templates of its own.
#pragma once

#include "engine/transformer/transformer_kernels.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kBlockBytes = sizeof(Int8Block);  // from a row to the next

// A fence: g++ 12 would keep more alive than there are registers, and spill.
[[gnu::always_inline]] inline void fence(__m256i& v) {
  asm volatile("" : "+x"(v));
}

[[gnu::always_inline]] inline __m256i four_codes(const std::int8_t* q) {
  std::int32_t word;
  std::memcpy(&word, q, sizeof word);
  return _mm256_set1_epi32(word);
}

template <PackedLayout kLayout>
[[gnu::always_inline]] inline __m256 load_scale(const std::byte* scales, int which) {
  if constexpr (kLayout.scale_bytes == 4) return _mm256_loadu_ps(reinterpret_cast<const float*>(scales) + which * 16);
  return _mm256_cvtph_ps(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(reinterpret_cast<const std::uint16_t*>(scales) + which * 16)));
}

template <PackedLayout kLayout>
[[gnu::always_inline]] inline __m256i offset_dot(const Int8Block& x, int half) {
  if constexpr (kLayout.offset == 8) return _mm256_set1_epi32(x.minus_8_sum);
  if constexpr (kLayout.offset == 128) return _mm256_set1_epi32(x.minus_128_sum);
  if constexpr (kLayout.offset == 32) return _mm256_set1_epi32(x.minus_32_half_sums[half]);
  return _mm256_setzero_si256();
}

// The 8 rows of weights of which the codes of part p lie at `codes`, as bytes.
template <bool kHigh>
[[gnu::always_inline]] inline __m256i nibbles(const std::byte* codes, int p) {
  __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + p * 64));
  if (kHigh) both = _mm256_srli_epi16(both, 4);
  return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

// The sums of a group for kRows rows of a tile from `first_row` on. Prefetches are for every block `prefetch_step`
// bytes on.
template <class Dots, PackedFormat kFormat, int kRows>
[[gnu::noinline]] void group_times(const std::byte* group, std::size_t blocks, const Int8Tile& tile, int first_row,
                                   float* out, std::size_t out_stride, const std::byte* prefetch,
                                   std::size_t prefetch_step) {
  constexpr PackedLayout kLayout = layout_of(kFormat);
  constexpr int kHalves = kLayout.halves ? 2 : 1;
  const std::byte* scales = group;
  const std::byte* codes = group + kLayout.codes_at(blocks);
  const Int8Block* x = tile.blocks + first_row;  // of kRows rows
  __m256 sum[2][kRows];
  for (auto& of_vector : sum)
    for (__m256& s : of_vector) s = _mm256_setzero_ps();
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t line = 0; line < prefetch_step; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(prefetch + line), _MM_HINT_T0);
    prefetch += prefetch_step;
    const std::int8_t* q = x->q;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      asm volatile("" : "+r"(q));  // or broadcasts would be kept for the second vector, in memory
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) {
        __m256i dot[kRows];
        Dots::template of<kLayout, kRows>(dot, codes + v * 32, q, half);
        const std::byte* const here = scales + v * 8 * kLayout.scale_bytes;
        const __m256 d = load_scale<kLayout>(here, half);
#pragma GCC unroll 8
        for (std::size_t m = 0; m < kRows; ++m) {
          if constexpr (kLayout.offset != 0) dot[m] = _mm256_add_epi32(dot[m], offset_dot<kLayout>(x[m], half));
          sum[v][m] =
              _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[m]), _mm256_mul_ps(d, _mm256_set1_ps(x[m].scale)), sum[v][m]);
        }
        if constexpr (kLayout.has_min) {
          const __m256 min = load_scale<kLayout>(here, kHalves + half);
#pragma GCC unroll 8
          for (std::size_t m = 0; m < kRows; ++m) {
            const float s = kLayout.halves ? x[m].scaled_half_sums[half] : x[m].scaled_sum;
            sum[v][m] = _mm256_fmadd_ps(min, _mm256_set1_ps(s), sum[v][m]);
          }
        }
      }
    }
    scales += kLayout.scale_bytes_of_block();
    codes += kLayout.code_bytes_of_block();
    x += tile.rows;
  }
  out += static_cast<std::size_t>(first_row) * out_stride;
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v)
#pragma GCC unroll 8
    for (std::size_t m = 0; m < kRows; ++m) _mm256_storeu_ps(out + m * out_stride + v * 8, sum[v][m]);
}

using GroupTimes = void (*)(const std::byte* group, std::size_t blocks, const Int8Tile& tile, int first_row, float* out,
                            std::size_t out_stride, const std::byte* prefetch, std::size_t prefetch_step);
template <class Dots>
using ByRows = std::array<GroupTimes, Dots::kRowsAtOnce>;

template <class Dots, PackedFormat kFormat, std::size_t... kRows>
constexpr ByRows<Dots> by_rows(std::index_sequence<kRows...>) {
  return {group_times<Dots, kFormat, static_cast<int>(kRows) + 1>...};
}

// Multipliers of some rows of a tile, by their number less 1.
template <class Dots, PackedFormat kFormat>
const ByRows<Dots>& table_of() {
  static constexpr auto table = by_rows<Dots, kFormat>(std::make_index_sequence<Dots::kRowsAtOnce>());
  return table;
}

template <class Dots>
const ByRows<Dots>& table_of(PackedFormat format) {
  switch (format) {
    case PackedFormat::byte_scale:
      return table_of<Dots, PackedFormat::byte_scale>();
    case PackedFormat::nibble_scale:
      return table_of<Dots, PackedFormat::nibble_scale>();
    case PackedFormat::nibble_scale_min:
      return table_of<Dots, PackedFormat::nibble_scale_min>();
    case PackedFormat::nibble_wide_scale_min:
      return table_of<Dots, PackedFormat::nibble_wide_scale_min>();
    case PackedFormat::byte_wide_scale_min:
      return table_of<Dots, PackedFormat::byte_wide_scale_min>();
    case PackedFormat::byte_wide_half_scales:
      return table_of<Dots, PackedFormat::byte_wide_half_scales>();
    case PackedFormat::nibble_half_scales_min:
      return table_of<Dots, PackedFormat::nibble_half_scales_min>();
    default:
      return table_of<Dots, PackedFormat::byte_half_scales_min>();
  }
}

template <class Dots>
void int8_product(const ProductPart& part, std::span<const Int8Tile> tiles) {
  const auto& table = table_of<Dots>(part.weights->format());
  constexpr int kRowsAtOnce = Dots::kRowsAtOnce;
  const auto blocks = static_cast<std::size_t>(part.weights->blocks());
  const std::size_t block_bytes = part.weights->group_bytes() / blocks;
  const std::byte* const end = part.weights->group(part.group_end);
  for (std::int64_t g = part.group_begin; g < part.group_end; ++g) {
    const std::byte* const group = part.weights->group(g);
    const std::byte* prefetch = group + kPrefetchBytes;
    if (prefetch >= end && part.next != nullptr) prefetch = part.next + (prefetch - end);
    for (const Int8Tile& tile : tiles) {
      float* const out = part.out + static_cast<std::size_t>(tile.first_row) * part.out_stride + g * kGroupRows;
      const int chunks = (tile.rows + kRowsAtOnce - 1) / kRowsAtOnce;
      for (int chunk = 0, row = 0; chunk < chunks; ++chunk) {
        const int rows = (tile.rows - row) / (chunks - chunk);
        const std::size_t step = &tile == tiles.data() ? block_bytes / static_cast<std::size_t>(chunks) : 0;
        table[static_cast<std::size_t>(rows) - 1](group, blocks, tile, row, out, part.out_stride, prefetch, step);
        prefetch += step * blocks;
        row += rows;
      }
    }
  }
}

}  // namespace
}  // namespace draftproof
