#include "engine/decode/stop.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace draftproof {
namespace {

bool in_vocabulary(Token token, std::size_t vocab_size) {
  return token >= 0 && static_cast<std::size_t>(token) < vocab_size;
}

std::string outside_vocabulary(Token token, std::size_t vocab_size) {
  return "token id " + std::to_string(token) + " is outside [0, " + std::to_string(vocab_size) + ")";
}

void require_not_negative(const char* option, std::int64_t value) {
  if (value < 0) throw usage_error(option, std::to_string(value) + " is negative; it counts tokens, from 0");
}

StopParameters checked(StopParameters parameters, std::size_t vocab_size, std::int64_t prompt_tokens,
                       const Detokeniser* detokeniser) {
  constexpr std::size_t kMaxVocab = static_cast<std::size_t>(std::numeric_limits<Token>::max());
  if (vocab_size < 1 || vocab_size > kMaxVocab) {
    throw usage_error("vocab_size", std::to_string(vocab_size) + " is not in [1, 2^31 - 1]");
  }
  require_ids("eos_ids", parameters.eos_ids, vocab_size);
  require_ids("stop_token_ids", parameters.stop_token_ids, vocab_size);
  for (std::size_t i = 0; i < parameters.stop_strings.size(); ++i) {
    if (parameters.stop_strings[i].empty()) {
      throw usage_error("stop_strings[" + std::to_string(i) + "]",
                        "an empty string would stop before the first token; leave it out");
    }
  }
  if (!parameters.stop_strings.empty() && detokeniser == nullptr) {
    throw usage_error("stop_strings", "stop strings are sought in text, which needs a detokeniser");
  }
  require_not_negative("prompt_tokens", prompt_tokens);
  require_not_negative("min_tokens", parameters.min_tokens);
  if (parameters.max_tokens) {
    require_not_negative("max_tokens", *parameters.max_tokens);
    if (parameters.min_tokens > *parameters.max_tokens) {
      throw usage_error("min_tokens", std::to_string(parameters.min_tokens) + " is above max_tokens " +
                                          std::to_string(*parameters.max_tokens));
    }
  }
  if (parameters.max_model_len) {
    require_not_negative("max_model_len", *parameters.max_model_len);
    if (prompt_tokens > *parameters.max_model_len) {
      throw usage_error("max_model_len", "the prompt has " + std::to_string(prompt_tokens) +
                                             " tokens, more than max_model_len " +
                                             std::to_string(*parameters.max_model_len));
    }
  }
  return parameters;
}

bool contains(const std::vector<Token>& ids, Token token) {
  return std::find(ids.begin(), ids.end(), token) != ids.end();
}

// Total bytes of the character that `lead` begins; 1 for bytes that begin no longer one.
std::size_t utf8_length(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 1;
}

// Whether `second` may follow `lead`: the narrower ranges exclude overlong forms, surrogates and what is above
// U+10FFFF.
bool utf8_second_byte_fits(unsigned char lead, unsigned char second) {
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

}  // namespace

void require_ids(const char* option, std::span<const Token> ids, std::size_t vocab_size) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!in_vocabulary(ids[i], vocab_size)) {
      throw usage_error(std::string(option) + "[" + std::to_string(i) + "]", outside_vocabulary(ids[i], vocab_size));
    }
  }
}

std::string_view detail_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return "none";
    case FinishReason::eos:
      return "eos";
    case FinishReason::stop_token:
      return "stop_token";
    case FinishReason::stop_string:
      return "stop_string";
    case FinishReason::length:
      return "length";
    case FinishReason::model_length:
      return "model_length";
    case FinishReason::grammar:
      return "grammar";
    case FinishReason::abort:
      return "abort";
  }
  throw Error(ErrorKind::internal, "FinishReason", "a value outside the enumeration");
}

std::string_view engine_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return "";
    case FinishReason::eos:
    case FinishReason::stop_token:
    case FinishReason::stop_string:
    case FinishReason::grammar:
      return "stop";
    case FinishReason::length:
    case FinishReason::model_length:
      return "length";
    case FinishReason::abort:
      return "abort";
  }
  throw Error(ErrorKind::internal, "FinishReason", "a value outside the enumeration");
}

std::size_t incomplete_utf8_tail(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t longest = std::min<std::size_t>(3, text.size());
  for (std::size_t tail = 1; tail <= longest; ++tail) {
    const std::size_t start = text.size() - tail;
    if ((byte(start) & 0xC0) == 0x80) continue;  // a continuation byte: its lead is further left
    if (utf8_length(byte(start)) <= tail) return 0;
    return tail == 1 || utf8_second_byte_fits(byte(start), byte(start + 1)) ? tail : 0;
  }
  return 0;
}

StopStringAutomaton::StopStringAutomaton(std::span<const std::string> stop_strings) : nodes_(1) {
  for (std::size_t i = 0; i < stop_strings.size(); ++i) {
    std::size_t state = kStart;
    for (const char c : stop_strings[i]) {
      const auto byte = static_cast<unsigned char>(c);
      if (const auto known = child(state, byte)) {
        state = *known;
        continue;
      }
      const std::size_t created = nodes_.size();
      nodes_[state].children.emplace_back(byte, created);
      const std::size_t depth = nodes_[state].depth + 1;
      nodes_.emplace_back().depth = depth;
      state = created;
    }
    if (!nodes_[state].match) nodes_[state].match = i;
  }
  // Breadth first, so that the fallback of a node, which is less deep, is complete when the node is reached.
  std::vector<std::size_t> order = {kStart};
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t state = order[at];
    Node& node = nodes_[state];
    node.open_length = node.children.empty() ? nodes_[node.fallback].open_length : node.depth;
    if (!node.match) node.match = nodes_[node.fallback].match;
    for (const auto& [byte, below] : node.children) {
      nodes_[below].fallback = state == kStart ? kStart : next(node.fallback, byte);
      order.push_back(below);
    }
  }
}

std::optional<std::size_t> StopStringAutomaton::child(std::size_t state, unsigned char byte) const {
  for (const auto& [label, below] : nodes_[state].children) {
    if (label == byte) return below;
  }
  return std::nullopt;
}

std::size_t StopStringAutomaton::next(std::size_t state, unsigned char byte) const {
  while (true) {
    if (const auto below = child(state, byte)) return *below;
    if (state == kStart) return kStart;
    state = nodes_[state].fallback;
  }
}

StopConditions::StopConditions(StopParameters parameters, std::size_t vocab_size, std::int64_t prompt_tokens,
                               const Detokeniser* detokeniser)
    : parameters_(checked(std::move(parameters), vocab_size, prompt_tokens, detokeniser)),
      vocab_size_(vocab_size),
      prompt_tokens_(prompt_tokens),
      detokeniser_(detokeniser),
      automaton_(parameters_.stop_strings),
      finish_reason_(limit_reached()) {}

StopResult StopConditions::push(std::span<const Token> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!in_vocabulary(tokens[i], vocab_size_)) {
      throw input_error("pushed token " + std::to_string(i), outside_vocabulary(tokens[i], vocab_size_));
    }
  }
  StopResult result;
  while (!finished() && result.tokens_kept < tokens.size()) {
    keep(tokens[result.tokens_kept], result.released_text);
    ++result.tokens_kept;
  }
  result.tokens_discarded = tokens.size() - result.tokens_kept;
  result.finish_reason = finish_reason_;
  return result;
}

StopResult StopConditions::end(FinishReason reason) {
  StopResult result;
  if (!finished()) {
    finish_reason_ = reason;
    release_decided(result.released_text);
  }
  result.finish_reason = finish_reason_;
  return result;
}

void StopConditions::keep(Token token, std::string& released) {
  ++output_tokens_;
  const std::string_view bytes = detokeniser_ == nullptr ? std::string_view() : detokeniser_->bytes_of(token);
  const bool may_stop = output_tokens_ > parameters_.min_tokens;
  const bool is_eos = contains(parameters_.eos_ids, token);
  if (may_stop && (is_eos || contains(parameters_.stop_token_ids, token))) {
    finish_reason_ = is_eos ? FinishReason::eos : FinishReason::stop_token;
    ending_token_ = token;
    if (parameters_.include_stop_string) held_ += bytes;
  } else if (match_stop_string(bytes, may_stop)) {
    finish_reason_ = FinishReason::stop_string;
  } else {
    finish_reason_ = limit_reached();
  }
  release_decided(released);
}

// Moves the bytes of one token to held_, up to the end of the first stop string. On a match held_ is what is released.
bool StopConditions::match_stop_string(std::string_view bytes, bool may_stop) {
  for (const char c : bytes) {
    held_ += c;
    automaton_state_ = automaton_.next(automaton_state_, static_cast<unsigned char>(c));
    const auto match = automaton_.match(automaton_state_);
    if (!may_stop || !match) continue;
    ending_stop_string_ = match;
    // The match lies in held_ as a whole: its beginning was held back as an open stop string.
    if (!parameters_.include_stop_string) held_.resize(held_.size() - parameters_.stop_strings[*match].size());
    return true;
  }
  return false;
}

FinishReason StopConditions::limit_reached() const {
  if (parameters_.max_tokens && output_tokens_ >= *parameters_.max_tokens) return FinishReason::length;
  // Written as a difference, which can not overflow: the constructor has checked prompt_tokens <= max_model_len.
  if (parameters_.max_model_len && output_tokens_ >= *parameters_.max_model_len - prompt_tokens_) {
    return FinishReason::model_length;
  }
  return FinishReason::none;
}

// Appends to `released` the part of held_ that no later token can take back; all of it once the request has ended.
void StopConditions::release_decided(std::string& released) {
  std::size_t decided = held_.size();
  if (!finished()) {
    // A stop string that will be included needs no hold-back: its bytes are released whether it completes or not.
    if (!parameters_.include_stop_string) decided -= automaton_.open_length(automaton_state_);
    if (parameters_.hold_incomplete_utf8) {
      decided -= incomplete_utf8_tail(std::string_view(held_).substr(0, decided));
    }
  }
  released.append(held_, 0, decided);
  held_.erase(0, decided);
}

}  // namespace draftproof
