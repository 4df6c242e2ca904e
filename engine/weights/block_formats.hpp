// The element formats of model files: what a value is, bit for bit, and how rows of float become blocks.
//
// A block holds `block_len` consecutive values of one row in `block_bytes` bytes, little-endian. d and m are binary16,
// q are unsigned integers, low bits first; every product and sum below is one binary32 operation, rounded once.
//   F32, F16, BF16   one value
//   Q8_0    32 values   d, i8 q[32]                     x = d q
//   Q4_0    32 values   d, u4 q[32]                     x = d (q - 8)
//   Q4_1    32 values   d, m, u4 q[32]                  x = d q + m
//   Q5_0    32 values   d, u32 fifth bits, u4 q[32]     x = d (q - 16)
//     of the 4-bit halves, byte j holds value j in its low and value j + 16 in its high nibble
//   Q4_K   256 values   d, e, 8 pairs of u6 (s, t), u4 q[256]               x = (d s) q - (e t)
//   Q5_K   256 values   d, e, 8 pairs of u6 (s, t), fifth bits, u4 q[256]   x = (d s) q - (e t)
//   Q6_K   256 values   u4 low, u2 high bits, i8 s[16], d                   x = (d s) (q - 32)
//   B2 ... B8  16 values   d, m, b-bit q[16] as one little-endian bit string   x = d q + m
// B2 to B8 are ours, for a drafter that is its target at fewer bits; no file holds them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

enum class TensorKind : std::uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q4_k,
  q5_k,
  q6_k,
  b2,
  b3,
  b4,
  b5,
  b6,
  b7,
  b8
};

struct TensorKindInfo {
  TensorKind kind;
  std::string_view name;
  std::int64_t block_len;
  std::int64_t block_bytes;
};

inline constexpr std::array<TensorKindInfo, 17> kTensorKinds = {{
    {TensorKind::f32, "F32", 1, 4},
    {TensorKind::f16, "F16", 1, 2},
    {TensorKind::bf16, "BF16", 1, 2},
    {TensorKind::q8_0, "Q8_0", 32, 34},
    {TensorKind::q4_0, "Q4_0", 32, 18},
    {TensorKind::q4_1, "Q4_1", 32, 20},
    {TensorKind::q5_0, "Q5_0", 32, 22},
    {TensorKind::q4_k, "Q4_K", 256, 144},
    {TensorKind::q5_k, "Q5_K", 256, 176},
    {TensorKind::q6_k, "Q6_K", 256, 210},
    {TensorKind::b2, "B2", 16, 8},
    {TensorKind::b3, "B3", 16, 10},
    {TensorKind::b4, "B4", 16, 12},
    {TensorKind::b5, "B5", 16, 14},
    {TensorKind::b6, "B6", 16, 16},
    {TensorKind::b7, "B7", 16, 18},
    {TensorKind::b8, "B8", 16, 20},
}};

constexpr const TensorKindInfo& info_of(TensorKind kind) {
  return kTensorKinds[static_cast<std::size_t>(kind)];
}

// The kind of 2 to 8 bits in blocks of 16.
constexpr TensorKind kind_of_bits(int bits) {
  return static_cast<TensorKind>(static_cast<int>(TensorKind::b2) + bits - 2);
}

// The bytes of `values` values, a multiple of the block length.
constexpr std::int64_t encoded_bytes(TensorKind kind, std::int64_t values) {
  return values / info_of(kind).block_len * info_of(kind).block_bytes;
}

// Decodes whole blocks: blocks [encoded_bytes(kind, n)] -> out [n], n a multiple of the block length. Equal to
// dequantize() of the Python package gguf 0.19, bit for bit (tests/vectors/block_formats.txt).
void decode_blocks(TensorKind kind, std::span<const std::byte> blocks, std::span<float> out);

// Whether encode_blocks() has a rule for the kind: all but Q5_0, Q4_K, Q5_K and Q6_K.
bool can_encode(TensorKind kind);

// Values [n] -> blocks [encoded_bytes(kind, n)], n a multiple of the block length; the values are finite. In binary32:
//   F16, BF16   to nearest, ties to even
//   Q8_0        d = max |x| / 127, q = x (1/d) to nearest, ties away from zero
//   Q4_0        d = x / -8 of the first x of largest magnitude, q = floor(x (1/d) + 8.5), at most 15
//   Q4_1, Bb    m = min x, d = (max x - m) / (2^b - 1), q = floor((x - m) (1/d) + 0.5), at most 2^b - 1
// with 1/d = 0 where d is 0; d and m are then stored as binary16, to nearest, ties to even. Q8_0, Q4_0 and Q4_1 equal
// quantize() of the Python package gguf 0.19, bit for bit.
void encode_blocks(TensorKind kind, std::span<const float> values, std::span<std::byte> out);

}  // namespace draftproof
