#include "engine/transformer/source_blocks.hpp"

#include "engine/weights/unaligned.hpp"

namespace draftproof {
namespace {

void set_scales(SourceBlock& out, float scale, float min) {
  out.scale[0] = out.scale[1] = scale;
  out.min[0] = out.min[1] = min;
}

// Byte j holds value j in its low and value j + 16 in its high nibble.
void unpack_nibbles(SourceBlock& out, const std::uint8_t* q) {
  for (std::size_t j = 0; j < 16; ++j) {
    out.code[j] = q[j] & 15;
    out.code[j + 16] = q[j] >> 4;
  }
}

void read_q8_0(SourceBlock& out, const std::uint8_t* block) {
  set_scales(out, half_at(block), 0.0f);
  for (std::size_t j = 0; j < 32; ++j) out.code[j] = block[2 + j] ^ 0x80;
}

void read_q5_0(SourceBlock& out, const std::uint8_t* block) {
  set_scales(out, half_at(block), 0.0f);
  unpack_nibbles(out, block + 6);
  const auto fifth = load_unaligned<std::uint32_t>(block + 2);
  for (std::size_t j = 0; j < 32; ++j)
    out.code[j] = static_cast<std::uint8_t>((out.code[j] | ((fifth >> j) & 1) << 4) + 112);  // q - 16 + 128
}

// Group `group` of 32 of the 8 of Q4_K, and with fifth bits of Q5_K (block_formats.hpp).
void read_super_block(SourceBlock& out, const std::uint8_t* block, int group, const std::uint8_t* fifth,
                      const std::uint8_t* q) {
  const std::uint8_t* const packed = block + 4;
  int scale = packed[group] & 63;
  int min = packed[group + 4] & 63;
  if (group >= 4) {
    scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4;
    min = (packed[group + 4] >> 4) | (packed[group] >> 6) << 4;
  }
  set_scales(out, half_at(block) * static_cast<float>(scale), -(half_at(block + 2) * static_cast<float>(min)));
  for (int j = 0; j < 32; ++j) {
    const int byte = q[group / 2 * 32 + j];
    const int upper = fifth == nullptr ? 0 : ((fifth[j] >> group) & 1) << 4;
    out.code[static_cast<std::size_t>(j)] = static_cast<std::uint8_t>((group % 2 == 0 ? byte & 15 : byte >> 4) | upper);
  }
}

void read_q6_k(SourceBlock& out, const std::uint8_t* block, int group) {
  const float d = half_at(block + 208);
  for (int h = 0; h < 2; ++h)
    out.scale[h] = d * static_cast<float>(load_unaligned<std::int8_t>(block + 192 + group * 2 + h));
  const int half = group / 4;
  for (int j = 0; j < 32; ++j) {
    const int byte = block[half * 64 + group % 2 * 32 + j];
    const int low = group % 4 < 2 ? byte & 15 : byte >> 4;
    const int upper = (block[128 + half * 32 + j] >> (2 * (group % 4))) & 3;
    out.code[static_cast<std::size_t>(j)] = static_cast<std::uint8_t>(low | upper << 4);
  }
}

// Two blocks of 16 values of `bits` bits.
void read_bits(SourceBlock& out, const std::uint8_t* blocks, int bits) {
  for (int h = 0; h < 2; ++h) {
    const std::uint8_t* const block = blocks + h * (4 + 2 * bits);
    out.scale[h] = half_at(block);
    out.min[h] = half_at(block + 2);
    for (int j = 0; j < 16; ++j) {
      const int first = j * bits;
      unsigned word = block[4 + first / 8];
      if (first % 8 + bits > 8) word |= static_cast<unsigned>(block[4 + first / 8 + 1]) << 8;
      out.code[static_cast<std::size_t>(h) * 16 + static_cast<std::size_t>(j)] =
          static_cast<std::uint8_t>((word >> (first % 8)) & ((1U << bits) - 1));
    }
  }
}

}  // namespace

SourceBlock source_block(TensorKind kind, const std::byte* row, std::size_t block) {
  const TensorKindInfo& info = info_of(kind);
  const std::size_t column = block * 32;
  const auto* const at = reinterpret_cast<const std::uint8_t*>(row) +
                         column / static_cast<std::size_t>(info.block_len) * static_cast<std::size_t>(info.block_bytes);
  const int group = static_cast<int>(block % 8);
  SourceBlock out;
  switch (kind) {
    case TensorKind::q8_0:
      read_q8_0(out, at);
      break;
    case TensorKind::q5_0:
      read_q5_0(out, at);
      break;
    case TensorKind::q4_0:
      set_scales(out, half_at(at), 0.0f);
      unpack_nibbles(out, at + 2);
      break;
    case TensorKind::q4_1:
      set_scales(out, half_at(at), half_at(at + 2));
      unpack_nibbles(out, at + 4);
      break;
    case TensorKind::q4_k:
      read_super_block(out, at, group, nullptr, at + 16);
      break;
    case TensorKind::q5_k:
      read_super_block(out, at, group, at + 16, at + 48);
      break;
    case TensorKind::q6_k:
      read_q6_k(out, at, group);
      break;
    default:
      read_bits(out, at, static_cast<int>(kind) - static_cast<int>(TensorKind::b2) + 2);
  }
  return out;
}

}  // namespace draftproof
