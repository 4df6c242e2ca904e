#include "base/json_text.hpp"

#include <cstddef>

#include "base/error.hpp"

namespace draftproof {

void require_json_depth(std::string_view text, const std::string& where) {
  constexpr int kDepthMax = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDepthMax) throw input_error(where, "nests deeper than " + std::to_string(kDepthMax) + " levels");
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace draftproof
