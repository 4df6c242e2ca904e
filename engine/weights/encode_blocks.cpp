// How rows of float become blocks; the rules are in block_formats.hpp.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "engine/weights/block_formats.hpp"

namespace draftproof {
namespace {

void store_half(float value, std::byte* at) {
  const std::uint16_t bits = f32_to_f16(value);
  std::memcpy(at, &bits, sizeof bits);
}

// 1/d, or 0 where there is none: then all values of the block are the same, or too close to tell.
float inverse(float d) {
  const float value = 1.0F / d;
  return d == 0.0F || !std::isfinite(value) ? 0.0F : value;
}

void encode_q8_0(const float* x, std::byte* out) {
  float largest = 0;
  for (int j = 0; j < 32; ++j) largest = std::max(largest, std::fabs(x[j]));
  const float d = largest / 127;
  const float scale = inverse(d);
  store_half(d, out);
  for (int j = 0; j < 32; ++j) {
    const auto q = static_cast<std::int8_t>(std::clamp(std::round(x[j] * scale), -128.0F, 127.0F));
    std::memcpy(out + 2 + j, &q, 1);
  }
}

void encode_q4_0(const float* x, std::byte* out) {
  const float* const extreme =
      std::max_element(x, x + 32, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const float d = *extreme / -8;
  const float scale = inverse(d);
  store_half(d, out);
  const auto code = [&](float value) { return static_cast<unsigned>(std::min(value * scale + 8.5F, 15.0F)); };
  for (int j = 0; j < 16; ++j) out[2 + j] = static_cast<std::byte>(code(x[j]) | code(x[j + 16]) << 4);
}

// The codes of one block that has a least value and a step; writes d and m.
void encode_affine(const float* x, int length, int bits, std::byte* out, unsigned* codes) {
  const auto [least, most] = std::minmax_element(x, x + length);
  const auto levels = static_cast<float>((1 << bits) - 1);
  const float d = (*most - *least) / levels;
  const float scale = inverse(d);
  store_half(d, out);
  store_half(*least, out + 2);
  for (int j = 0; j < length; ++j) codes[j] = static_cast<unsigned>(std::min((x[j] - *least) * scale + 0.5F, levels));
}

void encode_q4_1(const float* x, std::byte* out) {
  unsigned codes[32];
  encode_affine(x, 32, 4, out, codes);
  for (int j = 0; j < 16; ++j) out[4 + j] = static_cast<std::byte>(codes[j] | codes[j + 16] << 4);
}

void encode_bits(int bits, const float* x, std::byte* out) {
  unsigned codes[16];
  encode_affine(x, 16, bits, out, codes);
  std::fill_n(out + 4, 2 * bits, std::byte{0});
  for (int j = 0; j < 16; ++j) {
    const int first = j * bits;
    const unsigned word = codes[j] << (first % 8);
    out[4 + first / 8] |= static_cast<std::byte>(word & 255);
    if (first % 8 + bits > 8) out[4 + first / 8 + 1] |= static_cast<std::byte>(word >> 8);
  }
}

}  // namespace

bool can_encode(TensorKind kind) {
  return kind != TensorKind::q5_0 && kind != TensorKind::q4_k && kind != TensorKind::q5_k && kind != TensorKind::q6_k;
}

void encode_blocks(TensorKind kind, std::span<const float> values, std::span<std::byte> out) {
  const TensorKindInfo& info = info_of(kind);
  if (!can_encode(kind)) throw Error(ErrorKind::internal, std::string(info.name), "has no rule for encoding");
  const float* x = values.data();
  std::byte* to = out.data();
  for (const float* const end = x + values.size(); x < end; x += info.block_len, to += info.block_bytes) {
    switch (kind) {
      case TensorKind::f32:
        std::memcpy(to, x, sizeof *x);
        break;
      case TensorKind::f16:
        store_half(*x, to);
        break;
      case TensorKind::bf16: {
        const std::uint16_t bits = f32_to_bf16(*x);
        std::memcpy(to, &bits, sizeof bits);
        break;
      }
      case TensorKind::q8_0:
        encode_q8_0(x, to);
        break;
      case TensorKind::q4_0:
        encode_q4_0(x, to);
        break;
      case TensorKind::q4_1:
        encode_q4_1(x, to);
        break;
      default:
        encode_bits(static_cast<int>(kind) - static_cast<int>(TensorKind::b2) + 2, x, to);
    }
  }
}

}  // namespace draftproof
