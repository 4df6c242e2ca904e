// Words in names and in messages: lower case, numbers of things, lists of names that are cut.
#pragma once

#include <algorithm>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "base/printable.hpp"
#include "base/split.hpp"

namespace draftproof {

// ASCII letters alone: no locale changes them.
inline char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_case(c);
  return lower;
}

// "1 window", "3 windows"; of a noun that takes no s at its end the plural is said, too.
std::string counted_noun(std::integral auto count, std::string_view noun, std::string_view plural = {}) {
  std::string text = std::to_string(count) + " ";
  if (count == 1 || plural.empty()) return text.append(noun).append(count == 1 ? "" : "s");
  return text.append(plural);
}

// "'a', 'b', 'c', 'd' and 3 more".
inline std::string first_names(std::span<const std::string> names) {
  constexpr std::size_t kShown = 4;
  const std::string shown = joined(names.first(std::min(names.size(), kShown)), ", ", in_quotes);
  return names.size() > kShown ? shown + " and " + std::to_string(names.size() - kShown) + " more" : shown;
}

}  // namespace draftproof
