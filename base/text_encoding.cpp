#include "base/text_encoding.hpp"

#include <cstddef>
#include <cstdint>

namespace draftproof {
namespace {

void append_utf8(std::string& out, std::uint32_t c) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | (c >> shift & 0x3fU)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0U | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0U | c >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0U | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string of_utf16(std::string_view text, bool big_endian) {
  const std::size_t units = text.size() / 2;
  const auto unit = [&](std::size_t i) {
    const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at])); };
    return big_endian ? byte(2 * i) << 8 | byte(2 * i + 1) : byte(2 * i + 1) << 8 | byte(2 * i);
  };
  const auto is_half = [](std::uint32_t c, std::uint32_t first) { return c >= first && c < first + 0x400; };
  constexpr std::uint32_t kHigh = 0xd800, kLow = 0xdc00, kUnknown = 0xfffd;
  std::string out;
  out.reserve(units);
  for (std::size_t i = 0; i < units; ++i) {
    std::uint32_t c = unit(i);
    if (is_half(c, kHigh) && i + 1 < units && is_half(unit(i + 1), kLow))
      c = 0x10000 + ((c - kHigh) << 10) + (unit(++i) - kLow);
    else if (is_half(c, kHigh) || is_half(c, kLow))
      c = kUnknown;
    append_utf8(out, c);
  }
  return out;
}

bool is_ascii(char c) {
  return c > 0;
}

}  // namespace

std::optional<std::string> as_utf8(std::string_view text) {
  using namespace std::string_view_literals;
  std::optional<std::string> decoded;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    decoded = of_utf16(text.substr(2), text.front() == '\xFE');
  else if (text.size() >= 4 && is_ascii(text[0]) && text[1] == 0 && is_ascii(text[2]) && text[3] == 0)
    decoded = of_utf16(text, false);
  else if (text.size() >= 4 && text[0] == 0 && is_ascii(text[1]) && text[2] == 0 && is_ascii(text[3]))
    decoded = of_utf16(text, true);
  else if (text.starts_with("\xEF\xBB\xBF"))
    decoded = text.substr(3);
  const std::string_view now = decoded ? std::string_view(*decoded) : text;
  const std::size_t first = now.find("\r\n"sv);
  if (first == std::string_view::npos) return decoded;
  if (!decoded) decoded = text;
  std::size_t kept = first;
  for (std::size_t i = first; i < decoded->size(); ++i)
    if ((*decoded)[i] != '\r' || i + 1 == decoded->size() || (*decoded)[i + 1] != '\n')
      (*decoded)[kept++] = (*decoded)[i];
  decoded->resize(kept);
  return decoded;
}

}  // namespace draftproof
