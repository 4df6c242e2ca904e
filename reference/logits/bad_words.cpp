#include "reference/logits/bad_words.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace draftproof {

BadWords::BadWords(std::vector<std::vector<Token>> sequences, std::size_t vocab_size)
    : sequences_(std::move(sequences)) {
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    const std::string where = "bad_words[" + std::to_string(s) + "]";
    if (sequences_[s].empty()) throw usage_error(where, "an empty sequence bans nothing; it needs at least one token");
    for (std::size_t i = 0; i < sequences_[s].size(); ++i) {
      const Token token = sequences_[s][i];
      if (token < 0 || static_cast<std::size_t>(token) >= vocab_size) {
        throw usage_error(where + "[" + std::to_string(i) + "]",
                          "token id " + std::to_string(token) + " is outside [0, " + std::to_string(vocab_size) + ")");
      }
    }
  }
}

std::vector<Token> BadWords::banned_next(std::span<const Token> committed, std::span<const Token> draft) const {
  const std::size_t history_size = committed.size() + draft.size();
  const auto history = [&](std::size_t i) { return i < committed.size() ? committed[i] : draft[i - committed.size()]; };
  std::vector<Token> banned;
  for (const std::vector<Token>& sequence : sequences_) {
    const std::size_t before = sequence.size() - 1;
    if (before > history_size) continue;
    std::size_t matched = 0;
    while (matched < before && sequence[matched] == history(history_size - before + matched)) ++matched;
    if (matched == before) banned.push_back(sequence.back());
  }
  std::sort(banned.begin(), banned.end());
  banned.erase(std::unique(banned.begin(), banned.end()), banned.end());
  return banned;
}

}  // namespace draftproof
