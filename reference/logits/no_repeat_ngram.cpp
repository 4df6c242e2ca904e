#include "reference/logits/no_repeat_ngram.hpp"

#include <algorithm>

namespace draftproof {

std::vector<Token> repeating_tokens(std::span<const Token> text, std::size_t n) {
  std::vector<Token> banned;
  if (text.size() < n) return banned;
  const std::span<const Token> end = text.last(n - 1);
  for (std::size_t i = 0; i + n <= text.size(); ++i)
    if (std::equal(end.begin(), end.end(), text.begin() + static_cast<std::ptrdiff_t>(i)))
      banned.push_back(text[i + n - 1]);
  std::sort(banned.begin(), banned.end());
  banned.erase(std::unique(banned.begin(), banned.end()), banned.end());
  return banned;
}

}  // namespace draftproof
