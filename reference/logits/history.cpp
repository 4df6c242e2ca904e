#include "reference/logits/history.hpp"

#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

void check_token(Token token, std::int64_t vocab_size, const char* what, std::size_t position) {
  if (token < 0 || token >= vocab_size)
    throw input_error(
        std::string(what) + ", position " + std::to_string(position),
        "token " + std::to_string(token) + " is outside the vocabulary [0, " + std::to_string(vocab_size) + ")");
}

}  // namespace

History::History(std::span<const Token> prompt, std::span<const Token> output, std::int64_t vocab_size)
    : tokens_(prompt.begin(), prompt.end()), vocab_size_(vocab_size) {
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    check_token(prompt[i], vocab_size, "prompt", i);
    counts_[prompt[i]].in_prompt = true;
  }
  for (const Token token : output) append(token);
}

void History::append(Token token) {
  check_token(token, vocab_size_, "output", static_cast<std::size_t>(output_len_));
  tokens_.push_back(token);
  ++counts_[token].in_output;
  ++output_len_;
}

}  // namespace draftproof
