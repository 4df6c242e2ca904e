// How the messages of a conversation become one prompt.
//
// Model files carry a program for that, in a language of its own (Jinja). llama.cpp's interpreter runs it with what
// Hugging Face's transformers gives it. That library is not part of the program: ./draftproof fetch jinja takes it from
// the Python index, and a build with it has chat templates. Without it every template is refused, since the marks that
// stand in a template do not say what it writes. The text of a message is never taken for special tokens, so that no
// user can end a turn or speak as another.
#pragma once

#include <ctime>
#include <optional>
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

// Values that a template may ask for beside the conversation.
struct ChatContext {
  std::optional<std::string> start;  // bos_token
  std::optional<std::string> end;    // eos_token
  std::optional<std::time_t> now;    // of strftime_now; none: the time of the call
};

// Noon of "2026-11-29", by this machine's clock. Error (usage) at `where`: it is no such date.
std::time_t parse_chat_date(const std::string& text, const std::string& where);

// Was this program built with the library?
bool has_jinja();

class ChatTemplate {
 public:
  // `where` names the file in messages.
  ChatTemplate(std::string where, std::string text, ChatContext context = {})
      : where_(std::move(where)), text_(std::move(text)), context_(std::move(context)) {}

  // The prompt after which the assistant speaks, as transformers writes it. Errors: (usage) a program without the
  // library; (input) no message, another role, what the template refuses or the library does not know, a template that
  // leaves out what a user says, or takes more than kSeconds or kBytes.
  std::string render(std::span<const ChatMessage> messages) const;
  // The same as tokens; special ones where the template writes them, and not in the text of a message.
  std::vector<Token> encode(const Tokenizer& tokenizer, std::span<const ChatMessage> messages) const;

  static constexpr int kSeconds = 2;  // of processor time
  static constexpr std::size_t kBytes = std::size_t{128} << 20;

 private:
  std::string where_;
  std::string text_;
  ChatContext context_;
};

// The library's part: `text` run on the messages. Throws std::exception with its reason.
std::string run_jinja(const std::string& text, std::span<const ChatMessage> messages, const ChatContext& context);

}  // namespace draftproof
