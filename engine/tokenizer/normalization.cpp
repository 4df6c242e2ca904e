#include "engine/tokenizer/normalization.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace draftproof {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

const utf8proc_uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

// Bytes of the UTF-8 that a text begins with.
std::size_t valid_len(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    utf8proc_int32_t character = 0;
    const std::string_view rest = text.substr(length);
    const auto taken = utf8proc_iterate(bytes_of(rest), static_cast<utf8proc_ssize_t>(rest.size()), &character);
    if (taken <= 0) break;
    length += static_cast<std::size_t>(taken);
  }
  return length;
}

}  // namespace

std::string to_nfc(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return std::string(text);
  std::string normal;
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_len(text));
    if (!valid.empty()) {
      utf8proc_uint8_t* mapped = nullptr;
      const auto length = utf8proc_map(bytes_of(valid), static_cast<utf8proc_ssize_t>(valid.size()), &mapped,
                                       static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      const std::unique_ptr<utf8proc_uint8_t, Free> owner(mapped);
      if (length < 0) throw std::bad_alloc();  // of valid text the only failure
      normal.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
    }
    text.remove_prefix(valid.size());
    if (text.empty()) break;
    normal += text.front();
    text.remove_prefix(1);
  }
  return normal;
}

}  // namespace draftproof
