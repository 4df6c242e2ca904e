// Lists in options, in files and in messages: "4,8,16".
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

// The parts between separators, empty ones included: one more than there are separators. They are views of `text`.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The texts of the items, or what `text_of`, a function or a member, gives for each, with a separator between them.
template <class Items, class TextOf = std::identity>
std::string joined(const Items& items, std::string_view separator, TextOf text_of = {}) {
  std::string text;
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) text += separator;
    is_first = false;
    text += std::invoke(text_of, item);
  }
  return text;
}

}  // namespace draftproof
