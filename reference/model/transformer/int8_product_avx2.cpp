// Products of int8 rows with AVX2: half a group, 8 rows of weights, are the lanes of one vector, and up to 8 rows of
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

constexpr int kRowsAtOnce = 8;

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

// sum[m] += for parts [begin, end) the products of nibbles of the codes (kHigh: the upper ones) with q + 4 (p - begin),
// in 16 bits.
template <int kRows, bool kHigh, bool kFresh>
[[gnu::always_inline]] inline void add_nibbles(__m256i (&sum)[kRows], const std::byte* codes, int begin, int end,
                                               const std::int8_t* q) {
  const __m256i low_nibbles = _mm256_set1_epi8(15);
#pragma GCC unroll 8
  for (int p = begin; p < end; ++p) {
    __m256i part = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + p * 64));
    if (kHigh) part = _mm256_srli_epi16(part, 4);
    part = _mm256_and_si256(part, low_nibbles);
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) {
      const __m256i products = _mm256_maddubs_epi16(part, four_codes(q + m * 32 + 4 * (p - begin)));
      sum[m] = kFresh && p == begin ? products : _mm256_add_epi16(sum[m], products);
      fence(sum[m]);
    }
  }
}

// For lanes 8 `upper` ... of the group.
template <PackedFormat kFormat, int kRows>
[[gnu::noinline]] void half_group_times(const std::byte* group, std::size_t blocks, bool upper, const Int8Tile& tile,
                                        int first_row, float* out, std::size_t out_stride, const std::byte* prefetch,
                                        std::size_t prefetch_step) {
  constexpr PackedLayout kLayout = layout_of(kFormat);
  constexpr int kHalves = kLayout.halves ? 2 : 1;
  constexpr std::size_t kBlockBytes = kLayout.scale_bytes_of_block() + kLayout.code_bytes_of_block();
  const std::byte* scales = group + (upper ? 8 * kLayout.scale_bytes : 0);
  const std::byte* codes = group + kLayout.codes_at(blocks) + (upper ? 32 : 0);
  const auto tile_rows = static_cast<std::size_t>(tile.rows);
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i sixteens = _mm256_set1_epi16(16);
  __m256 sum[kRows];
  for (__m256& s : sum) s = _mm256_setzero_ps();
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t line = 0; line < kBlockBytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(prefetch + line), _MM_HINT_T0);
    prefetch += prefetch_step;
    const std::size_t cell = b * tile_rows + static_cast<std::size_t>(first_row);
    const std::int8_t* const q = tile.q + cell * kBlockColumns;
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      __m256i products[kRows];
      __m256i dot[kRows];
      const auto widen = [&](int m, __m256i factor) __attribute__((always_inline)) {
        return _mm256_madd_epi16(products[m], factor);
      };
      if constexpr (kLayout.code_bits == 4) {
        if (kLayout.halves) {
          if (half == 0) add_nibbles<kRows, false, true>(products, codes, 0, 4, q);
          if (half == 1) add_nibbles<kRows, true, true>(products, codes, 0, 4, q + 16);
        } else {
          add_nibbles<kRows, false, true>(products, codes, 0, 4, q);
          add_nibbles<kRows, true, false>(products, codes, 0, 4, q + 16);
        }
#pragma GCC unroll 8
        for (int m = 0; m < kRows; ++m)
          dot[m] =
              _mm256_add_epi32(widen(m, ones), offset_dot<kLayout>(tile, cell + static_cast<std::size_t>(m), half));
      } else {
        const int begin = kLayout.halves ? half * 4 : 0;
        const int end = kLayout.halves ? half * 4 + 4 : 8;
        add_nibbles<kRows, false, true>(products, codes, begin, end, q + begin * 4);
#pragma GCC unroll 8
        for (int m = 0; m < kRows; ++m) {
          dot[m] =
              _mm256_add_epi32(widen(m, ones), offset_dot<kLayout>(tile, cell + static_cast<std::size_t>(m), half));
          fence(dot[m]);
        }
        add_nibbles<kRows, true, true>(products, codes, begin, end, q + begin * 4);
#pragma GCC unroll 8
        for (int m = 0; m < kRows; ++m) dot[m] = _mm256_add_epi32(dot[m], widen(m, sixteens));
      }
      const __m256 d = load_scale<kLayout>(scales, half);
#pragma GCC unroll 8
      for (int m = 0; m < kRows; ++m)
        sum[m] =
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[m]),
                            _mm256_mul_ps(d, _mm256_set1_ps(tile.scale[cell + static_cast<std::size_t>(m)])), sum[m]);
      if constexpr (kLayout.has_min) {
        const __m256 min = load_scale<kLayout>(scales, kHalves + half);
#pragma GCC unroll 8
        for (int m = 0; m < kRows; ++m) {
          const std::size_t at = cell + static_cast<std::size_t>(m);
          const float s =
              kLayout.halves ? tile.scaled_half_sums[at * 2 + static_cast<std::size_t>(half)] : tile.scaled_sum[at];
          sum[m] = _mm256_fmadd_ps(min, _mm256_set1_ps(s), sum[m]);
        }
      }
    }
    scales += kLayout.scale_bytes_of_block();
    codes += kLayout.code_bytes_of_block();
  }
  out += static_cast<std::size_t>(first_row) * out_stride + (upper ? 8 : 0);
#pragma GCC unroll 8
  for (std::size_t m = 0; m < kRows; ++m) _mm256_storeu_ps(out + m * out_stride, sum[m]);
}

using HalfGroupTimes = decltype(&half_group_times<PackedFormat::byte_scale, 1>);

template <PackedFormat kFormat, std::size_t... kRows>
constexpr std::array<HalfGroupTimes, kRowsAtOnce> by_rows(std::index_sequence<kRows...>) {
  return {half_group_times<kFormat, static_cast<int>(kRows) + 1>...};
}

// What multiplies some rows of a tile, by their number less 1.
template <PackedFormat kFormat>
const std::array<HalfGroupTimes, kRowsAtOnce>& table_of() {
  static constexpr auto table = by_rows<kFormat>(std::make_index_sequence<kRowsAtOnce>());
  return table;
}

const std::array<HalfGroupTimes, kRowsAtOnce>& table_of(PackedFormat format) {
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
        const std::size_t step = &tile == tiles.data() && chunk == 0 ? block_bytes : 0;
        for (const bool upper : {false, true})
          table[static_cast<std::size_t>(rows) - 1](group, blocks, upper, tile, row, out, part.out_stride, prefetch,
                                                    upper ? 0 : step);
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
