// Products of int8 rows with AVX-512 VNNI: a group's 16 rows of weights are the lanes of one vector, and up to 16 rows
// of activations are accumulators, so that weights are read once for all of them.
//
// Intrinsics, since Highway 1.0.3 has no vpdpbusd of unsigned and signed bytes; and assembly for that one instruction,
// since g++ 12 does not fold the broadcast of the activations into it, which costs an eighth of the speed at 8 rows.
#include "reference/model/transformer/transformer_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <array>
#include <utility>

// g++ 12 takes what its own header of intrinsics leaves undefined, and then overwrites, for a read of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,f16c")

namespace draftproof {
namespace {

using AliasedWord [[gnu::may_alias]] = std::int32_t;

// Adds to each lane the products of its four unsigned bytes with the four signed ones at `q`.
[[gnu::always_inline]] inline void add_dots(__m512i& acc, __m512i codes, const std::int8_t* q) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(codes), "m"(*reinterpret_cast<const AliasedWord*>(q)));
}

template <PackedLayout kLayout>
[[gnu::always_inline]] inline __m512 load_scale(const std::byte* scales, int which) {
  if constexpr (kLayout.scale_bytes == 4) return _mm512_loadu_ps(reinterpret_cast<const float*>(scales) + which * 16);
  return _mm512_cvtph_ps(_mm256_loadu_si256(
      reinterpret_cast<const __m256i*>(reinterpret_cast<const std::uint16_t*>(scales) + which * 16)));
}

// Where the dots of a row's block begin: what the offset of the codes takes off.
template <PackedLayout kLayout>
[[gnu::always_inline]] inline __m512i first_dot(const Int8Tile& tile, std::size_t cell, int half) {
  if constexpr (kLayout.offset == 8) return _mm512_set1_epi32(tile.minus_8_sum[cell]);
  if constexpr (kLayout.offset == 128) return _mm512_set1_epi32(tile.minus_128_sum[cell]);
  if constexpr (kLayout.offset == 32)
    return _mm512_set1_epi32(tile.minus_32_half_sums[cell * 2 + static_cast<std::size_t>(half)]);
  return _mm512_setzero_si512();
}

// Prefetches are for every block `prefetch_step` bytes on.
template <PackedFormat kFormat, int kRows>
[[gnu::noinline]] void group_times(const std::byte* group, std::size_t blocks, const Int8Tile& tile, float* out,
                                   std::size_t out_stride, const std::byte* prefetch, std::size_t prefetch_step) {
  constexpr PackedLayout kLayout = layout_of(kFormat);
  constexpr int kHalves = kLayout.halves ? 2 : 1;
  constexpr std::size_t kBlockBytes = kLayout.scale_bytes_of_block() + kLayout.code_bytes_of_block();
  const std::byte* scales = group;
  const std::byte* codes = group + kLayout.codes_at(blocks);
  const std::int8_t* q = tile.q;
  const __m512i low_nibbles = _mm512_set1_epi8(15);
  __m512 sum[kRows];
  for (__m512& s : sum) s = _mm512_setzero_ps();
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t line = 0; line < kBlockBytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(prefetch + line), _MM_HINT_T0);
    prefetch += prefetch_step;
    const std::size_t cell = b * kRows;
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      __m512i dot[kRows];
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) dot[m] = first_dot<kLayout>(tile, cell + static_cast<std::size_t>(m), half);
      if constexpr (kLayout.code_bits == 4) {
#pragma GCC unroll 4
        for (int p = 0; p < 4; ++p) {
          const __m512i both = _mm512_loadu_si512(codes + p * 64);
          const __m512i low = _mm512_and_si512(both, low_nibbles);
          const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_nibbles);
          if (!kLayout.halves || half == 0) {
#pragma GCC unroll 16
            for (int m = 0; m < kRows; ++m) add_dots(dot[m], low, q + m * 32 + 4 * p);
          }
          if (!kLayout.halves || half == 1) {
#pragma GCC unroll 16
            for (int m = 0; m < kRows; ++m) add_dots(dot[m], high, q + m * 32 + 16 + 4 * p);
          }
        }
      } else {
#pragma GCC unroll 8
        for (int p = half * 4; p < (kLayout.halves ? half * 4 + 4 : 8); ++p) {
          const __m512i part = _mm512_loadu_si512(codes + p * 64);
#pragma GCC unroll 16
          for (int m = 0; m < kRows; ++m) add_dots(dot[m], part, q + m * 32 + 4 * p);
        }
      }
      const __m512 d = load_scale<kLayout>(scales, half);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m)
        sum[m] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[m]),
                            _mm512_mul_ps(d, _mm512_set1_ps(tile.scale[cell + static_cast<std::size_t>(m)])), sum[m]);
      if constexpr (kLayout.has_min) {
        const __m512 min = load_scale<kLayout>(scales, kHalves + half);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) {
          const std::size_t at = cell + static_cast<std::size_t>(m);
          const float s =
              kLayout.halves ? tile.scaled_half_sums[at * 2 + static_cast<std::size_t>(half)] : tile.scaled_sum[at];
          sum[m] = _mm512_fmadd_ps(min, _mm512_set1_ps(s), sum[m]);
        }
      }
    }
    scales += kLayout.scale_bytes_of_block();
    codes += kLayout.code_bytes_of_block();
    q += kRows * kBlockColumns;
  }
#pragma GCC unroll 16
  for (std::size_t m = 0; m < kRows; ++m) _mm512_storeu_ps(out + m * out_stride, sum[m]);
}

using GroupTimes = decltype(&group_times<PackedFormat::byte_scale, 1>);

template <PackedFormat kFormat, std::size_t... kRows>
constexpr std::array<GroupTimes, kTileRows> by_rows(std::index_sequence<kRows...>) {
  return {group_times<kFormat, static_cast<int>(kRows) + 1>...};
}

// What multiplies a tile of rows, by its number of rows less 1.
template <PackedFormat kFormat>
const std::array<GroupTimes, kTileRows>& table_of() {
  static constexpr auto table = by_rows<kFormat>(std::make_index_sequence<kTileRows>());
  return table;
}

const std::array<GroupTimes, kTileRows>& table_of(PackedFormat format) {
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
      const std::size_t step = &tile == tiles.data() ? block_bytes : 0;
      table[static_cast<std::size_t>(tile.rows) - 1](group, blocks, tile, out, part.out_stride, prefetch, step);
    }
  }
}

}  // namespace
}  // namespace draftproof

#pragma GCC pop_options

namespace draftproof {

Int8Product int8_product_avx512_vnni() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") ? int8_product : nullptr;
}

}  // namespace draftproof

#else

namespace draftproof {

Int8Product int8_product_avx512_vnni() {
  return nullptr;
}

}  // namespace draftproof

#endif
