// UTF-8, character by character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace draftproof {

struct Utf8Character {
  std::uint32_t code_point;
  std::size_t length;  // bytes; 0: not well-formed
};

// The character at the start of `bytes` (not empty), by the rules of Unicode's table 3-7: no overlong forms, no
// surrogates, nothing above U+10FFFF.
inline Utf8Character decode_utf8(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() < length) return {0, 0};
  std::uint32_t code_point = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    code_point = (code_point << 6) | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < kLeast[length] || code_point > 0x10ffff || surrogate) return {0, 0};
  return {code_point, length};
}

}  // namespace draftproof
