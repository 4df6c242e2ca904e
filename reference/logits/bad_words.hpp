// Bad words: token sequences that must not appear. The last token of a sequence is banned exactly where the tokens
// before it have just been written, in the prompt or in the output; a sequence of one token is banned everywhere.
//
// It is a function of the history alone, which is what keeps speculation exact: row i of a draft is asked with the
// committed tokens and the first i draft tokens, and nothing has to be undone when drafts are rejected.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

class BadWords {
 public:
  // Errors (usage): an empty sequence, an id outside [0, vocab_size), each naming sequence and position.
  BadWords(std::vector<std::vector<Token>> sequences, std::size_t vocab_size);

  // The ids banned at the position after `committed` (prompt and output) and `draft` (may be empty), ascending and
  // each once. Ids in the history are only compared, so padding or foreign ids there match nothing.
  std::vector<Token> banned_next(std::span<const Token> committed, std::span<const Token> draft = {}) const;

 private:
  std::vector<std::vector<Token>> sequences_;
};

}  // namespace draftproof
