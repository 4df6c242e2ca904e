// When one request ends, and which of its text may already be shown.
//
// Tokens arrive one at a time, or several in one step when speculation emits them; the outcome does not depend on the
// grouping. Each token is checked in this order, and the first condition that holds ends the request:
//   eos, stop_token, stop_string, length (max_tokens), model_length (prompt + output = max_model_len).
// Tokens of the step behind the ending one are discarded and counted, because an acceptance length that counts them
// reports tokens that no user received.
//
// Stop strings are sought in the bytes of the output, across token borders, by one Aho-Corasick automaton: the match
// that completes first ends the request, and of several that complete at the same byte the longest one. Text that may
// still become a stop string is held back until that is decided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.hpp"
#include "engine/tokenizer/detokeniser.hpp"

namespace draftproof {

enum class FinishReason { none, eos, stop_token, stop_string, length, model_length, grammar, abort };

// The condition itself: "none", "eos", "stop_token", "stop_string", "length", "model_length", "grammar", "abort".
std::string_view detail_name(FinishReason reason);

// Name in serving engines: "stop", "length" or "abort"; empty while the request runs.
std::string_view engine_name(FinishReason reason);

struct StopParameters {
  std::vector<Token> eos_ids;
  std::vector<Token> stop_token_ids;
  std::vector<std::string> stop_strings;
  // Whether the stop string, or the bytes of the ending eos or stop token, belong to the released text.
  bool include_stop_string = false;
  // Whether released text waits for the rest of a UTF-8 character. Bytes that can not be UTF-8 never wait.
  bool hold_incomplete_utf8 = true;
  // The first min_tokens output tokens can not end the request by eos, stop token or stop string: a stop string must
  // complete in a later token. It is the rule of the logits pipeline, which bans stop ids for exactly these tokens.
  std::int64_t min_tokens = 0;
  std::optional<std::int64_t> max_tokens;     // output tokens
  std::optional<std::int64_t> max_model_len;  // prompt and output tokens
};

struct StopResult {
  std::string released_text;  // bytes that became final with this push
  FinishReason finish_reason = FinishReason::none;
  std::size_t tokens_kept = 0;       // of this push, the ending token included
  std::size_t tokens_discarded = 0;  // of this push, behind the ending token
};

// How many bytes at the end of `text` begin a well-formed UTF-8 character (Unicode table 3-7) and lack its rest: 0
// to 3.
std::size_t incomplete_utf8_tail(std::string_view text);

// Aho-Corasick over bytes. A state stands for the longest end of the text that begins some stop string.
class StopStringAutomaton {
 public:
  explicit StopStringAutomaton(std::span<const std::string> stop_strings);

  static constexpr std::size_t kStart = 0;
  std::size_t next(std::size_t state, unsigned char byte) const;

  // Index of the longest stop string that the text ends with (of equal strings the first); empty when there is none.
  std::optional<std::size_t> match(std::size_t state) const { return nodes_[state].match; }
  // Length in bytes of the longest end of the text that a stop string continues.
  std::size_t open_length(std::size_t state) const { return nodes_[state].open_length; }

 private:
  struct Node {
    std::vector<std::pair<unsigned char, std::size_t>> children;
    std::size_t depth = 0;
    std::size_t fallback = kStart;
    std::size_t open_length = 0;
    std::optional<std::size_t> match;
  };
  std::optional<std::size_t> child(std::size_t state, unsigned char byte) const;

  std::vector<Node> nodes_;
};

// The stop conditions of one request and their state.
class StopConditions {
 public:
  // `detokeniser` may be null when no text is wanted; otherwise it must outlive this object. With max_tokens = 0, or a
  // prompt of max_model_len tokens, the request has ended before its first token.
  // Errors (usage): an id outside [0, vocab_size), an empty stop string, stop strings without a detokeniser, negative
  // limits, min_tokens above max_tokens, a prompt longer than max_model_len.
  StopConditions(StopParameters parameters, std::size_t vocab_size, std::int64_t prompt_tokens,
                 const Detokeniser* detokeniser);

  // The tokens of one step, in order. Once the request has ended, all tokens are discarded.
  // Errors (input): an id outside [0, vocab_size); nothing has changed then.
  StopResult push(std::span<const Token> tokens);

  // Ends the request from outside and releases what was held back; without effect on a request that has ended.
  // grammar: its grammar allows nothing more, and there is no end token.
  StopResult end(FinishReason reason);

  FinishReason finish_reason() const { return finish_reason_; }
  bool finished() const { return finish_reason_ != FinishReason::none; }
  std::int64_t output_tokens() const { return output_tokens_; }
  // The token that ended the request (eos, stop_token), or kPaddingToken.
  Token ending_token() const { return ending_token_; }
  // Index of the stop string that ended the request, or empty.
  std::optional<std::size_t> ending_stop_string() const { return ending_stop_string_; }

 private:
  void keep(Token token, std::string& released);
  bool match_stop_string(std::string_view bytes, bool may_stop);
  FinishReason limit_reached() const;
  void release_decided(std::string& released);

  StopParameters parameters_;
  std::size_t vocab_size_;
  std::int64_t prompt_tokens_;
  const Detokeniser* detokeniser_;
  StopStringAutomaton automaton_;
  std::size_t automaton_state_ = StopStringAutomaton::kStart;
  std::string held_;  // output text that is not released yet
  std::int64_t output_tokens_ = 0;
  FinishReason finish_reason_ = FinishReason::none;
  Token ending_token_ = kPaddingToken;
  std::optional<std::size_t> ending_stop_string_;
};

// Usage error of the first id outside [0, vocab_size), as option[i].
void require_ids(const char* option, std::span<const Token> ids, std::size_t vocab_size);

}  // namespace draftproof
