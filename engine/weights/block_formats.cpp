#include "engine/weights/block_formats.hpp"

#include <bit>
#include <cmath>

#include "base/dtype.hpp"
#include "engine/weights/unaligned.hpp"

namespace draftproof {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks are read in place; the formats are little-endian");

const std::uint8_t* octets(const std::byte* at) {
  return reinterpret_cast<const std::uint8_t*>(at);
}

void decode_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(load_unaligned<std::int8_t>(block + 2 + j));
}

void decode_q4_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  const std::uint8_t* const q = octets(block + 2);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>((q[j] & 15) - 8);
    out[j + 16] = d * static_cast<float>((q[j] >> 4) - 8);
  }
}

void decode_q4_1(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const std::uint8_t* const q = octets(block + 4);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(q[j] & 15) + m;
    out[j + 16] = d * static_cast<float>(q[j] >> 4) + m;
  }
}

void decode_q5_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  const auto fifth = load_unaligned<std::uint32_t>(block + 2);
  const std::uint8_t* const q = octets(block + 6);
  for (int j = 0; j < 16; ++j) {
    const int low = (q[j] & 15) | static_cast<int>((fifth >> j) & 1) << 4;
    const int high = (q[j] >> 4) | static_cast<int>((fifth >> (j + 16)) & 1) << 4;
    out[j] = d * static_cast<float>(low - 16);
    out[j + 16] = d * static_cast<float>(high - 16);
  }
}

// The eight pairs of 6-bit numbers of Q4_K and Q5_K, in 12 bytes: the first four of each are the low six bits of bytes
// 0 to 7; the last four have their low halves in the nibbles of bytes 8 to 11 and their upper two bits above the first.
struct ScalePair {
  float scale;
  float minimum;
};
ScalePair scale_pair(const std::uint8_t* packed, int i) {
  if (i < 4) return {static_cast<float>(packed[i] & 63), static_cast<float>(packed[i + 4] & 63)};
  const int scale = (packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4;
  const int minimum = (packed[i + 4] >> 4) | (packed[i] >> 6) << 4;
  return {static_cast<float>(scale), static_cast<float>(minimum)};
}

// Q4_K without, Q5_K with `fifth`: 32 bytes whose bit i is of the i-th group of 32 values. Byte j of each 32 bytes of q
// holds a value of an even group in its low nibble and one of the next group in its high nibble.
void decode_super_block(const std::byte* block, const std::uint8_t* fifth, const std::uint8_t* q, float* out) {
  const float d = half_at(block);
  const float e = half_at(block + 2);
  for (int group = 0; group < 8; ++group) {
    const ScalePair pair = scale_pair(octets(block + 4), group);
    const float scale = d * pair.scale;
    const float minimum = e * pair.minimum;
    for (int j = 0; j < 32; ++j) {
      const int nibble = group % 2 == 0 ? q[group / 2 * 32 + j] & 15 : q[group / 2 * 32 + j] >> 4;
      const int upper = fifth == nullptr ? 0 : ((fifth[j] >> group) & 1) << 4;
      out[group * 32 + j] = scale * static_cast<float>(nibble | upper) - minimum;
    }
  }
}

void decode_q4_k(const std::byte* block, float* out) {
  decode_super_block(block, nullptr, octets(block + 16), out);
}

void decode_q5_k(const std::byte* block, float* out) {
  decode_super_block(block, octets(block + 16), octets(block + 48), out);
}

// Two halves of 128 values, each of four groups of 32: 64 bytes of low nibbles, where groups 2 and 3 have the high ones
// of groups 0 and 1, and 32 bytes of which group g has bits 2g and 2g + 1. Sixteen values share a scale.
void decode_q6_k(const std::byte* block, float* out) {
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int group = i / 32 % 4;
    const int j = i % 32;
    const int byte = octets(block)[half * 64 + group % 2 * 32 + j];
    const int low = group < 2 ? byte & 15 : byte >> 4;
    const int upper = (octets(block)[128 + half * 32 + j] >> (2 * group)) & 3;
    const float scale = d * static_cast<float>(load_unaligned<std::int8_t>(block + 192 + i / 16));
    out[i] = scale * static_cast<float>((low | upper << 4) - 32);
  }
}

// The bit string of 16 values of `bits` bits: value j begins at bit j * bits, so no value touches three bytes.
void decode_bits(int bits, const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const std::uint8_t* const q = octets(block + 4);
  for (int j = 0; j < 16; ++j) {
    const int first = j * bits;
    unsigned word = q[first / 8];
    if (first % 8 + bits > 8) word |= static_cast<unsigned>(q[first / 8 + 1]) << 8;
    out[j] = d * static_cast<float>((word >> (first % 8)) & ((1U << bits) - 1)) + m;
  }
}

int bits_of(TensorKind kind) {
  return static_cast<int>(kind) - static_cast<int>(TensorKind::b2) + 2;
}

void decode_block(TensorKind kind, const std::byte* block, float* out) {
  switch (kind) {
    case TensorKind::f32:
      *out = load_unaligned<float>(block);
      return;
    case TensorKind::f16:
      *out = half_at(block);
      return;
    case TensorKind::bf16:
      *out = bf16_to_f32(load_unaligned<std::uint16_t>(block));
      return;
    case TensorKind::q8_0:
      return decode_q8_0(block, out);
    case TensorKind::q4_0:
      return decode_q4_0(block, out);
    case TensorKind::q4_1:
      return decode_q4_1(block, out);
    case TensorKind::q5_0:
      return decode_q5_0(block, out);
    case TensorKind::q4_k:
      return decode_q4_k(block, out);
    case TensorKind::q5_k:
      return decode_q5_k(block, out);
    case TensorKind::q6_k:
      return decode_q6_k(block, out);
    default:
      return decode_bits(bits_of(kind), block, out);
  }
}

}  // namespace

void decode_blocks(TensorKind kind, std::span<const std::byte> blocks, std::span<float> out) {
  const TensorKindInfo& info = info_of(kind);
  const auto count = static_cast<std::int64_t>(out.size()) / info.block_len;
  for (std::int64_t i = 0; i < count; ++i)
    decode_block(kind, blocks.data() + i * info.block_bytes, out.data() + i * info.block_len);
}

}  // namespace draftproof
