// Lists in options and in files: "4,8,16".
#pragma once

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

}  // namespace draftproof
