#include "base/json_text.hpp"

#include <cstddef>

#include "base/error.hpp"

namespace draftproof {

std::optional<std::string> checked_json(std::string_view text, const std::string& where) {
  constexpr int kDepthMax = 64;
  std::optional<std::string> quoted;
  std::size_t copied = 0;
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
    } else if (c == 'N' || c == 'I') {
      const std::string_view word = c == 'N' ? "NaN" : "Infinity";
      if (!text.substr(i).starts_with(word)) continue;
      const std::size_t begin = c == 'I' && i > copied && text[i - 1] == '-' ? i - 1 : i;
      if (!quoted) quoted.emplace();
      quoted->append(text.substr(copied, begin - copied)).append(1, '"');
      copied = i + word.size();
      quoted->append(text.substr(begin, copied - begin)).append(1, '"');
      i = copied - 1;
    }
  }
  if (quoted) quoted->append(text.substr(copied));
  return quoted;
}

}  // namespace draftproof
