// How the messages of a conversation become one prompt.
//
// Model files carry a program for that, in a language of its own (Jinja). It is not run: its text is recognised as one
// of a few known forms, and an unknown one is refused. The text of a message is never taken for special tokens, so that
// no user can end a turn or speak as another.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

class ChatTemplate {
 public:
  // `where` names the file in messages. Input error: a form that is not known, naming those that are.
  static ChatTemplate recognise(const std::string& where, std::string_view text);

  std::string_view name() const;  // "ChatML", "Llama 3", "Gemma"
  // Text in front of a conversation that does not begin with a system message; empty: nothing.
  const std::string& default_system() const { return default_system_; }

  // The prompt after which the assistant speaks. Input errors: no message, another role, a system message that is not
  // the first, a tokenizer without the special tokens of the form.
  std::vector<Token> encode(const Tokenizer& tokenizer, std::span<const ChatMessage> messages) const;

 private:
  struct Form;
  ChatTemplate(std::string where, const Form* form, std::string default_system, bool has_start)
      : where_(std::move(where)), form_(form), default_system_(std::move(default_system)), has_start_(has_start) {}

  std::string where_;
  const Form* form_;
  std::string default_system_;
  bool has_start_;  // the prompt begins with the tokenizer's start token
};

}  // namespace draftproof
