#include "engine/tokenizer/chat_template.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace draftproof {

// A turn is begin, role, behind_role, content, end, behind_end; begin and end are special tokens.
struct ChatTemplate::Form {
  std::string_view name;
  std::string_view begin;
  std::string_view role_end;  // a special token, or nothing
  std::string_view behind_role;
  std::string_view end;
  std::string_view behind_end;
  std::string_view assistant;  // the role's name
  bool trims;                  // white space around a content goes away
  bool has_system_turn;        // otherwise a system message stands in front of the first user's
};

namespace {

constexpr std::string_view kSpaces = " \t\n\r\f\v";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

// The system message that a ChatML template writes where the conversation has none: literal text in it, between the
// marks of a system turn.
std::string literal_system(std::string_view text) {
  constexpr std::string_view kBegin = "<|im_start|>system";
  for (std::size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at + 1)) {
    std::string_view rest = text.substr(at + kBegin.size());
    if (rest.starts_with('\n')) {
      rest.remove_prefix(1);
    } else if (rest.starts_with("\\n")) {
      rest.remove_prefix(2);
    } else {
      continue;
    }
    const std::string_view system = rest.substr(0, rest.find("<|im_end|>"));
    if (system.size() < rest.size() && !system.empty() && system.find_first_of("{}'\"\\") == system.npos)
      return std::string(system);
  }
  return {};
}

// Tokens and text in the order of the prompt; text is encoded in stretches as long as they are, since what is cut apart
// becomes other tokens.
class PromptWriter {
 public:
  PromptWriter(const Tokenizer& tokenizer, std::string where) : tokenizer_(tokenizer), where_(std::move(where)) {}

  void text(std::string_view text) { text_ += text; }
  void special(std::string_view name) {
    if (name.empty()) return;
    const auto token = tokenizer_.added_token(name);
    if (!token)
      throw input_error(where_, "the tokenizer has no token " + in_quotes(name) + "; the chat template needs it");
    token_(*token);
  }
  void start() {
    if (const auto token = tokenizer_.start_token()) token_(*token);
  }
  std::vector<Token> finish() {
    flush();
    return std::move(tokens_);
  }

 private:
  void token_(Token token) {
    flush();
    tokens_.push_back(token);
  }
  void flush() {
    const std::vector<Token> ids = tokenizer_.encode(std::exchange(text_, {}), {false, false});
    tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  }

  const Tokenizer& tokenizer_;
  std::string where_;
  std::string text_;
  std::vector<Token> tokens_;
};

}  // namespace

ChatTemplate ChatTemplate::recognise(const std::string& where, std::string_view text) {
  static constexpr std::array<Form, 3> kForms = {{
      {"ChatML", "<|im_start|>", "", "\n", "<|im_end|>", "\n", "assistant", false, true},
      {"Llama 3", "<|start_header_id|>", "<|end_header_id|>", "\n\n", "<|eot_id|>", "", "assistant", true, true},
      {"Gemma", "<start_of_turn>", "", "\n", "<end_of_turn>", "\n", "model", true, false},
  }};
  // Dates and tools in a system message of the template's own making: a form that we do not write.
  const bool has_dates = text.find("strftime_now") != text.npos || text.find("date_string") != text.npos;
  for (const Form& form : kForms) {
    if (text.find(form.begin) == text.npos || text.find(form.end) == text.npos || has_dates) continue;
    return {where, &form, &form == kForms.data() ? literal_system(text) : "", text.find("bos_token") != text.npos};
  }
  throw input_error(where, "the chat template is of an unknown form; known are ChatML, Llama 3 and Gemma");
}

std::string_view ChatTemplate::name() const {
  return form_->name;
}

std::vector<Token> ChatTemplate::encode(const Tokenizer& tokenizer, std::span<const ChatMessage> messages) const {
  if (messages.empty()) throw input_error(where_, "the conversation has no message; expected at least one");
  PromptWriter prompt(tokenizer, where_);
  if (has_start_) prompt.start();
  std::string in_front;  // a system message that has no turn of its own
  const auto turn = [&](std::string_view role, std::string_view content) {
    prompt.special(form_->begin);
    prompt.text(role == "assistant" ? form_->assistant : role);
    prompt.special(form_->role_end);
    prompt.text(form_->behind_role);
    prompt.text(std::exchange(in_front, {}));
    prompt.text(form_->trims ? trimmed(content) : content);
    prompt.special(form_->end);
    prompt.text(form_->behind_end);
  };
  const bool begins_with_system = messages.front().role == "system";
  if (!begins_with_system && !default_system_.empty()) turn("system", default_system_);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    const std::string place = "message " + std::to_string(i);
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
      throw input_error(place, "its role is " + in_quotes(message.role) + "; expected system, user or assistant");
    if (message.role == "system" && i > 0)
      throw input_error(place, "is a system message; expected it to be the first one");
    if (message.role == "system" && !form_->has_system_turn) {
      in_front = message.content + "\n\n";
    } else {
      turn(message.role, message.content);
    }
  }
  prompt.special(form_->begin);
  prompt.text(form_->assistant);
  prompt.special(form_->role_end);
  prompt.text(form_->behind_role);
  return prompt.finish();
}

}  // namespace draftproof
