// How weights lie in memory for the kernels: one layout for all instruction sets.
//
// A matrix [rows, columns] is cut into groups of 16 rows, the lanes of the kernels, so that no sum runs across lanes;
// rows are padded with zeros to a whole group. Columns come in blocks of 32. A group is contiguous:
//   quantised   scales   [blocks][d, (d of the upper 16 columns), (m), (m of the upper 16 columns)][16 rows], padded to
//               64 bytes
//               codes    [blocks][4 or 8][16 rows][4]: byte i of part p holds the code of column 4 p + i; with 4 bits
//                        its low nibble does, and its high nibble holds that of column 16 + 4 p + i
//   float       elements [blocks][32 columns][16 rows]
// A weight is x = d (code - offset), or d code + m, in binary32, rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace draftproof {

inline constexpr std::int64_t kGroupRows = 16;
inline constexpr std::int64_t kBlockColumns = 32;

enum class PackedFormat : std::uint8_t {
  byte_scale,              // Q8_0, Q5_0: unsigned codes around 128
  nibble_scale,            // Q4_0: around 8
  nibble_scale_min,        // Q4_1
  nibble_wide_scale_min,   // Q4_K: d s and -(e t) do not fit binary16, so they are kept as binary32
  byte_wide_scale_min,     // Q5_K
  byte_wide_half_scales,   // Q6_K: blocks of 16; codes around 32
  nibble_half_scales_min,  // B2, B3, B4: blocks of 16
  byte_half_scales_min,    // B5 to B8
  f32,
  f16,
  bf16,
};

struct PackedLayout {
  int code_bits;    // 4 or 8; 0: no codes, the elements are floats
  int scale_bytes;  // of one d or m; of a float format, of one element
  bool has_min;
  bool halves;  // d and m for each 16 columns
  int offset;   // codes stand for code - offset

  constexpr bool quantised() const { return code_bits != 0; }
  constexpr int scales_per_row() const { return (has_min ? 2 : 1) * (halves ? 2 : 1); }
  constexpr std::size_t scale_bytes_of_block() const {
    return static_cast<std::size_t>(scale_bytes * scales_per_row()) * kGroupRows;
  }
  constexpr std::size_t code_bytes_of_block() const {
    if (!quantised()) return static_cast<std::size_t>(scale_bytes) * kGroupRows * kBlockColumns;
    return static_cast<std::size_t>(code_bits) * kGroupRows * kBlockColumns / 8;
  }
  // Where the codes of a group begin.
  constexpr std::size_t codes_at(std::size_t blocks) const {
    return quantised() ? (blocks * scale_bytes_of_block() + 63) / 64 * 64 : 0;
  }
  constexpr std::size_t group_bytes(std::size_t blocks) const {
    return codes_at(blocks) + blocks * code_bytes_of_block();
  }
};

constexpr PackedLayout layout_of(PackedFormat format) {
  switch (format) {
    case PackedFormat::byte_scale:
      return {8, 2, false, false, 128};
    case PackedFormat::nibble_scale:
      return {4, 2, false, false, 8};
    case PackedFormat::nibble_scale_min:
      return {4, 2, true, false, 0};
    case PackedFormat::nibble_wide_scale_min:
      return {4, 4, true, false, 0};
    case PackedFormat::byte_wide_scale_min:
      return {8, 4, true, false, 0};
    case PackedFormat::byte_wide_half_scales:
      return {8, 4, false, true, 32};
    case PackedFormat::nibble_half_scales_min:
      return {4, 2, true, true, 0};
    case PackedFormat::byte_half_scales_min:
      return {8, 2, true, true, 0};
    case PackedFormat::f32:
      return {0, 4, false, false, 0};
    case PackedFormat::f16:
    case PackedFormat::bf16:
      break;
  }
  return {0, 2, false, false, 0};
}

}  // namespace draftproof
