// Products of int8 rows with AVX-512 VNNI: a group's 16 rows of weights are the lanes of one vector, and up to 6 rows
// of activations are accumulators. Of many rows two groups are multiplied at once, so that a broadcast of activations
// serves both: the multipliers are the limit then, not the loads. Weights come from memory once for all rows of a
// tile.
//
// Intrinsics, since Highway 1.0.3 has no vpdpbusd of unsigned and signed bytes; and assembly for that one instruction
// where there is one group, since g++ 12 does not fold the broadcast of the activations into it.
#include "engine/transformer/transformer_kernels.hpp"

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

constexpr std::size_t kBlockBytes = sizeof(Int8Block);  // from a row to the next

using AliasedWord [[gnu::may_alias]] = std::int32_t;

// Adds to each lane the products of its four unsigned bytes with the four signed ones at `q`.
[[gnu::always_inline]] inline void add_dots(__m512i& acc, __m512i codes, const std::int8_t* q) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(codes), "m"(*reinterpret_cast<const AliasedWord*>(q)));
}

[[gnu::always_inline]] inline __m512i broadcast(const std::int8_t* q) {
  return _mm512_set1_epi32(*reinterpret_cast<const AliasedWord*>(q));
}

template <PackedLayout kLayout>
[[gnu::always_inline]] inline __m512 load_scale(const std::byte* scales, int which) {
  if constexpr (kLayout.scale_bytes == 4) return _mm512_loadu_ps(reinterpret_cast<const float*>(scales) + which * 16);
  return _mm512_cvtph_ps(_mm256_loadu_si256(
      reinterpret_cast<const __m256i*>(reinterpret_cast<const std::uint16_t*>(scales) + which * 16)));
}

// Where the dots of a row's block begin: what the offset of the codes takes off.
template <PackedLayout kLayout>
[[gnu::always_inline]] inline __m512i first_dot(const Int8Block& x, int half) {
  if constexpr (kLayout.offset == 8) return _mm512_set1_epi32(x.minus_8_sum);
  if constexpr (kLayout.offset == 128) return _mm512_set1_epi32(x.minus_128_sum);
  if constexpr (kLayout.offset == 32) return _mm512_set1_epi32(x.minus_32_half_sums[half]);
  return _mm512_setzero_si512();
}

// The sums of kGroups neighbouring groups for kRows rows of a tile from `first_row` on. A broadcast of activations
// serves all groups, and what is unpacked all rows. Prefetches are for every block `prefetch_step` bytes on.
template <PackedFormat kFormat, int kGroups, int kRows>
[[gnu::noinline]] void groups_times(const std::byte* group, std::size_t group_bytes, std::size_t blocks,
                                    const Int8Tile& tile, int first_row, float* out, std::size_t out_stride,
                                    const std::byte* prefetch, std::size_t prefetch_step) {
  constexpr PackedLayout kLayout = layout_of(kFormat);
  constexpr int kHalves = kLayout.halves ? 2 : 1;
  const std::byte* scales = group;
  const std::byte* codes = group + kLayout.codes_at(blocks);
  const Int8Block* x = tile.blocks + first_row;  // of kRows rows
  const __m512i low_nibbles = _mm512_set1_epi8(15);
  __m512 sum[kGroups][kRows];
  for (auto& of_group : sum)
    for (__m512& s : of_group) s = _mm512_setzero_ps();
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t line = 0; line < prefetch_step; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(prefetch + line), _MM_HINT_T0);
    prefetch += prefetch_step;
    const std::int8_t* const q = x->q;
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      __m512i dot[kGroups][kRows];
#pragma GCC unroll 16
      for (std::size_t m = 0; m < kRows; ++m) {
        const __m512i first = first_dot<kLayout>(x[m], half);
#pragma GCC unroll 2
        for (auto& of_group : dot) of_group[m] = first;
      }
      const auto add = [&](const __m512i(&part)[kGroups], const std::int8_t* at) __attribute__((always_inline)) {
#pragma GCC unroll 16
        for (std::size_t m = 0; m < kRows; ++m) {
          if constexpr (kGroups == 1) {
            add_dots(dot[0][m], part[0], at + m * kBlockBytes);
          } else {
            const __m512i four = broadcast(at + m * kBlockBytes);
#pragma GCC unroll 2
            for (int g = 0; g < kGroups; ++g) dot[g][m] = _mm512_dpbusd_epi32(dot[g][m], part[g], four);
          }
        }
      };
      if constexpr (kLayout.code_bits == 4) {
#pragma GCC unroll 4
        for (int p = 0; p < 4; ++p) {
          __m512i low[kGroups], high[kGroups];
#pragma GCC unroll 2
          for (int g = 0; g < kGroups; ++g) {
            const __m512i both = _mm512_loadu_si512(codes + g * group_bytes + p * 64);
            low[g] = _mm512_and_si512(both, low_nibbles);
            high[g] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_nibbles);
          }
          if (!kLayout.halves || half == 0) add(low, q + 4 * p);
          if (!kLayout.halves || half == 1) add(high, q + 16 + 4 * p);
        }
      } else {
#pragma GCC unroll 8
        for (int p = half * 4; p < (kLayout.halves ? half * 4 + 4 : 8); ++p) {
          __m512i part[kGroups];
#pragma GCC unroll 2
          for (int g = 0; g < kGroups; ++g) part[g] = _mm512_loadu_si512(codes + g * group_bytes + p * 64);
          add(part, q + 4 * p);
        }
      }
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        const __m512 d = load_scale<kLayout>(scales + g * group_bytes, half);
#pragma GCC unroll 16
        for (std::size_t m = 0; m < kRows; ++m)
          sum[g][m] =
              _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[g][m]), _mm512_mul_ps(d, _mm512_set1_ps(x[m].scale)), sum[g][m]);
        if constexpr (kLayout.has_min) {
          const __m512 min = load_scale<kLayout>(scales + g * group_bytes, kHalves + half);
#pragma GCC unroll 16
          for (std::size_t m = 0; m < kRows; ++m) {
            const float s = kLayout.halves ? x[m].scaled_half_sums[half] : x[m].scaled_sum;
            sum[g][m] = _mm512_fmadd_ps(min, _mm512_set1_ps(s), sum[g][m]);
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
  for (int g = 0; g < kGroups; ++g)
#pragma GCC unroll 16
    for (std::size_t m = 0; m < kRows; ++m) _mm512_storeu_ps(out + m * out_stride + g * kGroupRows, sum[g][m]);
}

constexpr int kRowsAtOnce = 6;  // whose sums and dots of two groups fit into 32 registers
// Up to here a pass waits for memory, which comes faster when groups are read one after the other.
constexpr int kRowsOfSingleGroups = 4;

using GroupsTimes = decltype(&groups_times<PackedFormat::byte_scale, 1, 1>);

// Indexed by the number of rows of activations less 1.
using ByRows = std::array<GroupsTimes, kRowsAtOnce>;

struct GroupsTimesTable {
  ByRows one_group;
  ByRows two_groups;
};

template <PackedFormat kFormat, std::size_t... kRows>
constexpr GroupsTimesTable by_rows(std::index_sequence<kRows...>) {
  return {{groups_times<kFormat, 1, static_cast<int>(kRows) + 1>...},
          {groups_times<kFormat, 2, static_cast<int>(kRows) + 1>...}};
}

template <PackedFormat kFormat>
const GroupsTimesTable& table_of() {
  static constexpr GroupsTimesTable table = by_rows<kFormat>(std::make_index_sequence<kRowsAtOnce>());
  return table;
}

const GroupsTimesTable& table_of(PackedFormat format) {
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
  const GroupsTimesTable& table = table_of(part.weights->format());
  const auto blocks = static_cast<std::size_t>(part.weights->blocks());
  const std::size_t group_bytes = part.weights->group_bytes();
  const std::byte* const end = part.weights->group(part.group_end);
  for (std::int64_t g = part.group_begin; g < part.group_end;) {
    const bool pair = g + 1 < part.group_end && tiles.front().rows > kRowsOfSingleGroups;
    const ByRows& by_rows_here = pair ? table.two_groups : table.one_group;
    const std::size_t groups = pair ? 2 : 1;
    const std::byte* const group = part.weights->group(g);
    // Two groups are read side by side, so that the second is needed as soon as the first.
    const std::byte* prefetch = group + (groups - 1) * group_bytes + kPrefetchBytes;
    if (prefetch >= end && part.next != nullptr) prefetch = part.next + (prefetch - end);
    for (const Int8Tile& tile : tiles) {
      float* const out = part.out + static_cast<std::size_t>(tile.first_row) * part.out_stride + g * kGroupRows;
      const int chunks = (tile.rows + kRowsAtOnce - 1) / kRowsAtOnce;
      for (int chunk = 0, row = 0; chunk < chunks; ++chunk) {
        const int rows = (tile.rows - row) / (chunks - chunk);
        // Each chunk of the first tile asks for its share of what comes next: memory is kept busy all the time.
        const std::size_t step =
            &tile == tiles.data() ? groups * group_bytes / blocks / static_cast<std::size_t>(chunks) : 0;
        by_rows_here[static_cast<std::size_t>(rows) - 1](group, group_bytes, blocks, tile, row, out, part.out_stride,
                                                         prefetch, step);
        prefetch += step * blocks;
        row += rows;
      }
    }
    g += static_cast<std::int64_t>(groups);
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
