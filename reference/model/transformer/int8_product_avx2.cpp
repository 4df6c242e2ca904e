// Products of int8 rows with AVX2: a group is two vectors of 8 rows of weights, and up to 4 rows of
// activations are accumulators. Products of bytes are added in 16 bits, where 8 of a nibble and an int8 (at most
// 16 * 15 * 127 = 30480) fit; codes of a byte are taken as two nibbles.
//
// Intrinsics, since Highway 1.0.3 has no vpmaddubsw.
#include "reference/model/transformer/transformer_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace draftproof {
namespace {

constexpr int kRowsAtOnce = 4;

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
[[gnu::always_inline]] inline __m256i offset_dot(const Int8Tile& tile, std::size_t cell, int half) {
  if constexpr (kLayout.offset == 8) return _mm256_set1_epi32(tile.minus_8_sum[cell]);
  if constexpr (kLayout.offset == 128) return _mm256_set1_epi32(tile.minus_128_sum[cell]);
  if constexpr (kLayout.offset == 32)
    return _mm256_set1_epi32(tile.minus_32_half_sums[cell * 2 + static_cast<std::size_t>(half)]);
  return _mm256_setzero_si256();
}

// sum[h][m] += for parts [begin, end) the products of nibbles of the codes (kHigh: the upper ones) of 8 rows of weights
// each, with q + 4 (p - begin), in 16 bits. A broadcast of activations serves both halves.
template <int kRows, bool kHigh, bool kFresh>
[[gnu::always_inline]] inline void add_nibbles(__m256i (&sum)[2][kRows], const std::byte* codes, int begin, int end,
                                               const std::int8_t* q) {
  const __m256i low_nibbles = _mm256_set1_epi8(15);
#pragma GCC unroll 8
  for (int p = begin; p < end; ++p) {
    __m256i part[2];
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      part[h] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + p * 64 + h * 32));
      if (kHigh) part[h] = _mm256_srli_epi16(part[h], 4);
      part[h] = _mm256_and_si256(part[h], low_nibbles);
    }
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) {
      const __m256i four = four_codes(q + m * 32 + 4 * (p - begin));
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const __m256i products = _mm256_maddubs_epi16(part[h], four);
        sum[h][m] = kFresh && p == begin ? products : _mm256_add_epi16(sum[h][m], products);
        fence(sum[h][m]);
      }
    }
  }
}

template <PackedFormat kFormat, int kRows>
[[gnu::noinline]] void group_times(const std::byte* group, std::size_t blocks, const Int8Tile& tile, int first_row,
                                   float* out, std::size_t out_stride, const std::byte* prefetch,
                                   std::size_t prefetch_step) {
  constexpr PackedLayout kLayout = layout_of(kFormat);
  constexpr int kHalves = kLayout.halves ? 2 : 1;
  const std::byte* scales = group;
  const std::byte* codes = group + kLayout.codes_at(blocks);
  const auto tile_rows = static_cast<std::size_t>(tile.rows);
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i sixteens = _mm256_set1_epi16(16);
  __m256 sum[2][kRows];
  for (auto& of_half : sum)
    for (__m256& s : of_half) s = _mm256_setzero_ps();
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t line = 0; line < prefetch_step; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(prefetch + line), _MM_HINT_T0);
    prefetch += prefetch_step;
    const std::size_t cell = b * tile_rows + static_cast<std::size_t>(first_row);
    const std::int8_t* const q = tile.q + cell * kBlockColumns;
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      __m256i products[2][kRows];
      __m256i dot[2][kRows];
      if constexpr (kLayout.code_bits == 4) {
        if (kLayout.halves) {
          if (half == 0) add_nibbles<kRows, false, true>(products, codes, 0, 4, q);
          if (half == 1) add_nibbles<kRows, true, true>(products, codes, 0, 4, q + 16);
        } else {
          add_nibbles<kRows, false, true>(products, codes, 0, 4, q);
          add_nibbles<kRows, true, false>(products, codes, 0, 4, q + 16);
        }
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h)
#pragma GCC unroll 8
          for (std::size_t m = 0; m < kRows; ++m)
            dot[h][m] =
                _mm256_add_epi32(_mm256_madd_epi16(products[h][m], ones), offset_dot<kLayout>(tile, cell + m, half));
      } else {
        const int begin = kLayout.halves ? half * 4 : 0;
        const int end = kLayout.halves ? half * 4 + 4 : 8;
        add_nibbles<kRows, false, true>(products, codes, begin, end, q + begin * 4);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h)
#pragma GCC unroll 8
          for (std::size_t m = 0; m < kRows; ++m) {
            dot[h][m] =
                _mm256_add_epi32(_mm256_madd_epi16(products[h][m], ones), offset_dot<kLayout>(tile, cell + m, half));
            fence(dot[h][m]);
          }
        add_nibbles<kRows, true, true>(products, codes, begin, end, q + begin * 4);
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h)
#pragma GCC unroll 8
          for (int m = 0; m < kRows; ++m)
            dot[h][m] = _mm256_add_epi32(dot[h][m], _mm256_madd_epi16(products[h][m], sixteens));
      }
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const std::byte* const here = scales + h * 8 * kLayout.scale_bytes;
        const __m256 d = load_scale<kLayout>(here, half);
#pragma GCC unroll 8
        for (std::size_t m = 0; m < kRows; ++m)
          sum[h][m] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[h][m]),
                                      _mm256_mul_ps(d, _mm256_set1_ps(tile.scale[cell + m])), sum[h][m]);
        if constexpr (kLayout.has_min) {
          const __m256 min = load_scale<kLayout>(here, kHalves + half);
#pragma GCC unroll 8
          for (std::size_t m = 0; m < kRows; ++m) {
            const std::size_t at = cell + m;
            const float s =
                kLayout.halves ? tile.scaled_half_sums[at * 2 + static_cast<std::size_t>(half)] : tile.scaled_sum[at];
            sum[h][m] = _mm256_fmadd_ps(min, _mm256_set1_ps(s), sum[h][m]);
          }
        }
      }
    }
    scales += kLayout.scale_bytes_of_block();
    codes += kLayout.code_bytes_of_block();
  }
  out += static_cast<std::size_t>(first_row) * out_stride;
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h)
#pragma GCC unroll 8
    for (std::size_t m = 0; m < kRows; ++m) _mm256_storeu_ps(out + m * out_stride + h * 8, sum[h][m]);
}

using GroupTimes = decltype(&group_times<PackedFormat::byte_scale, 1>);

template <PackedFormat kFormat, std::size_t... kRows>
constexpr std::array<GroupTimes, kRowsAtOnce> by_rows(std::index_sequence<kRows...>) {
  return {group_times<kFormat, static_cast<int>(kRows) + 1>...};
}

// What multiplies some rows of a tile, by their number less 1.
template <PackedFormat kFormat>
const std::array<GroupTimes, kRowsAtOnce>& table_of() {
  static constexpr auto table = by_rows<kFormat>(std::make_index_sequence<kRowsAtOnce>());
  return table;
}

const std::array<GroupTimes, kRowsAtOnce>& table_of(PackedFormat format) {
  switch (format) {
    case PackedFormat::byte_scale:
      return table_of<PackedFormat::byte_scale>();
    case PackedFormat::nibble_scale:
      return table_of<PackedFormat::nibble_scale>();
    case PackedFormat::nibble_scale_min:
      return table_of<PackedFormat::nibble_scale_min>();
    case PackedFormat::nibble_wide_scale_min:
      return table_of<PackedFormat::nibble_wide_scale_min>();
    case PackedFormat::byte_wide_scale_min:
      return table_of<PackedFormat::byte_wide_scale_min>();
    case PackedFormat::byte_wide_half_scales:
      return table_of<PackedFormat::byte_wide_half_scales>();
    case PackedFormat::nibble_half_scales_min:
      return table_of<PackedFormat::nibble_half_scales_min>();
    default:
      return table_of<PackedFormat::byte_half_scales_min>();
  }
}

void int8_product(const ProductPart& part, std::span<const Int8Tile> tiles) {
  const auto& table = table_of(part.weights->format());
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

#pragma GCC pop_options

namespace draftproof {

Int8Product int8_product_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? int8_product : nullptr;
}

}  // namespace draftproof

#else

namespace draftproof {

Int8Product int8_product_avx2() {
  return nullptr;
}

}  // namespace draftproof

#endif
