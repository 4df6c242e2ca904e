// Toy grammars: automata over token ids, small enough for proofs. What proofs, bugs and tests of structured output
// share; an engine's grammar differs from one in size alone.
//
// A string is legal if the automaton, started in state 0, has a transition for each of its tokens. The end token is
// legal in accepting states, and after it nothing but itself: a distribution over strings of any length has a row
// everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

struct ToyGrammar {
  static constexpr std::int32_t kDead = -1;  // behind a token that is not allowed

  // [states, V]: the state after a token, or kDead. The end token's entry is not read.
  std::vector<std::vector<std::int32_t>> next;
  std::vector<bool> accepting;  // [states]
  Token end = 0;                // the last token of the vocabulary

  std::int32_t vocab_size() const { return end + 1; }
  std::int32_t ended() const { return static_cast<std::int32_t>(next.size()); }

  std::int32_t after(std::int32_t state, Token token) const {
    if (state == kDead) return kDead;
    if (state == ended()) return token == end ? state : kDead;
    if (token == end) return accepting[static_cast<std::size_t>(state)] ? ended() : kDead;
    return next[static_cast<std::size_t>(state)][static_cast<std::size_t>(token)];
  }
  std::int32_t after(std::span<const Token> tokens, std::int32_t state = 0) const {
    for (const Token token : tokens) state = after(state, token);
    return state;
  }
  bool allows(std::int32_t state, Token token) const { return after(state, token) != kDead; }

  // The mask of the position behind a state as the pipeline takes it: [ceil(V/32)], bit i % 32 of word i / 32 for token
  // i. All tokens behind a token that is not allowed: nobody comes there.
  std::vector<std::uint32_t> mask(std::int32_t state) const {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(vocab_size() + 31) / 32, 0);
    for (Token token = 0; token <= end; ++token)
      if (state == kDead || allows(state, token)) words[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
    return words;
  }

  // The only token that is allowed, if there is only one and the string has not ended.
  std::optional<Token> forced(std::int32_t state) const {
    std::optional<Token> only;
    if (state == kDead || state == ended()) return only;
    for (Token token = 0; token <= end; ++token) {
      if (!allows(state, token)) continue;
      if (only) return std::nullopt;
      only = token;
    }
    return only;
  }
  // All tokens that are forced behind a state, one after the other.
  std::vector<Token> forced_tokens(std::int32_t state) const {
    std::vector<Token> tokens;
    while (const std::optional<Token> token = forced(state)) {
      tokens.push_back(*token);
      state = after(state, *token);
    }
    return tokens;
  }
};

inline bool is_allowed(std::span<const std::uint32_t> mask, Token token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1u) != 0;
}

// State 0, accepting: even tokens (to 1) and the end. State 1: all but the end; token 0 leads to a jump of two forced
// tokens, 1 and 0 (of two tokens 0 and 0), through 2 and 3 back to 0, the others lead to 0 at once. vocab_size >= 2.
inline ToyGrammar toy_grammar(std::int32_t vocab_size) {
  ToyGrammar grammar;
  grammar.end = vocab_size - 1;
  const auto size = static_cast<std::size_t>(vocab_size);
  grammar.next.assign(4, std::vector<std::int32_t>(size, ToyGrammar::kDead));
  grammar.accepting = {true, false, false, false};
  for (std::size_t token = 0; token < size; ++token) {
    if (token % 2 == 0) grammar.next[0][token] = 1;
    grammar.next[1][token] = token == 0 ? 2 : 0;
  }
  grammar.next[2][vocab_size > 2 ? 1 : 0] = 3;
  grammar.next[3][0] = 0;
  return grammar;
}

}  // namespace draftproof
