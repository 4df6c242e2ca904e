// The tokens of one request and of its unconditional companion, which guidance needs: two prompts, one output. Whatever
// is appended or rolled back is so in both, since they would otherwise disagree about the position they predict.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

class Sequence {
 public:
  // Without an unconditional prompt there is no companion; an empty one is a companion that starts from nothing.
  Sequence(std::span<const Token> prompt, std::optional<std::span<const Token>> unconditional_prompt)
      : tokens_(prompt.begin(), prompt.end()), prompt_len_(prompt.size()) {
    if (!unconditional_prompt) return;
    guided_ = true;
    unconditional_tokens_.assign(unconditional_prompt->begin(), unconditional_prompt->end());
    unconditional_prompt_len_ = unconditional_prompt->size();
  }

  bool guided() const { return guided_; }
  std::span<const Token> tokens() const { return tokens_; }                              // prompt, then output
  std::span<const Token> unconditional_tokens() const { return unconditional_tokens_; }  // the companion's
  std::span<const Token> prompt() const { return tokens().first(prompt_len_); }
  std::span<const Token> output() const { return tokens().subspan(prompt_len_); }

  void append(Token token) {
    tokens_.push_back(token);
    if (guided_) unconditional_tokens_.push_back(token);
  }
  // Keeps the first output_len tokens of the output.
  void roll_back(std::size_t output_len) {
    tokens_.resize(prompt_len_ + output_len);
    if (guided_) unconditional_tokens_.resize(unconditional_prompt_len_ + output_len);
  }

 private:
  std::vector<Token> tokens_;
  std::vector<Token> unconditional_tokens_;
  std::size_t prompt_len_;
  std::size_t unconditional_prompt_len_ = 0;
  bool guided_ = false;
};

}  // namespace draftproof
