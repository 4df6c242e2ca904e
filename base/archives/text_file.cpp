#include "base/archives/text_file.hpp"

#include <array>
#include <cstdio>

#include "base/archives/gunzip.hpp"
#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/text_encoding.hpp"

namespace draftproof {
namespace {

constexpr const char* kStandardInput = "standard input";

// Once: whoever asks again gets the same.
const std::string& read_standard_input(std::uint64_t limit_bytes) {
  static std::string text;
  static bool read = false;
  if (read) return text;
  read = true;
  std::array<char, 1 << 16> part{};
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), stdin)) {
    if (text.size() + bytes > limit_bytes)
      throw input_error(kStandardInput, "has more than " + bytes_text(limit_bytes) + "; expected a shorter text");
    text.append(part.data(), bytes);
  }
  return text;
}

bool is_gzip(std::string_view text) {
  return text.starts_with("\x1f\x8b");
}

}  // namespace

std::string read_text(const std::string& path, std::uint64_t limit_bytes) {
  const auto text_of = [&](std::string_view bytes, const std::string& name) {
    std::string text = is_gzip(bytes) ? gunzip(bytes, name, limit_bytes) : std::string(bytes);
    auto decoded = as_utf8(text);
    return decoded ? *std::move(decoded) : text;
  };
  if (path == "-") return text_of(read_standard_input(limit_bytes), kStandardInput);
  return text_of(InputFile(path, limit_bytes).text(), path);
}

}  // namespace draftproof
