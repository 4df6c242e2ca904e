// Tokens that a request has seen and written so far: the state that penalties, bad words and min_tokens depend on.
//
// Under speculation every draft row must be processed with the history that plain decoding would have had there:
// committed tokens plus the drafts before it. A verifier therefore advances a copy along the draft and throws it away;
// the committed history changes only when tokens are emitted.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

class History {
 public:
  struct Counts {
    bool in_prompt = false;
    std::int32_t in_output = 0;
  };

  History() = default;
  // Errors (input): an id outside [0, vocab_size), naming "prompt" or "output" and the position.
  History(std::span<const Token> prompt, std::span<const Token> output, std::int64_t vocab_size);

  // An emitted (or, on a copy, drafted) token. Error (input): an id outside the vocabulary.
  void append(Token token);

  std::span<const Token> tokens() const { return tokens_; }  // prompt, then output
  std::int64_t output_len() const { return output_len_; }
  // Counts by token id. Order of iteration is unspecified; users edit each token independently.
  const std::unordered_map<Token, Counts>& counts() const { return counts_; }

 private:
  std::vector<Token> tokens_;
  std::unordered_map<Token, Counts> counts_;
  std::int64_t output_len_ = 0;
  std::int64_t vocab_size_ = 0;
};

}  // namespace draftproof
