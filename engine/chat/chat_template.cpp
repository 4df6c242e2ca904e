#include "engine/chat/chat_template.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/grammar/probe.hpp"

namespace draftproof {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

void check(std::span<const ChatMessage> messages, const std::string& where) {
  if (messages.empty()) throw input_error(where, "the conversation has no message; expected at least one");
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (const std::string& role = messages[i].role; role != "system" && role != "user" && role != "assistant")
      throw input_error("message " + std::to_string(i),
                        "its role is " + in_quotes(role) + "; expected system, user or assistant");
}

// The reason alone, of the library's account of where it stood: "Conversation roles must alternate".
std::string reason_of(std::string_view text) {
  for (const std::string_view mark : {"Jinja Exception: ", "Error: "})
    if (const std::size_t at = text.rfind(mark); at != text.npos) text.remove_prefix(at + mark.size());
  text = trimmed(text);
  return printable_line(std::string(text.substr(0, text.find('\n'))));
}

// A character of Unicode's private use that stands nowhere in the template or the conversation.
std::string unused_mark(const std::string& text, std::span<const ChatMessage> messages) {
  std::string mark = "\uE000";
  const auto is_used = [&] {
    return text.find(mark) != text.npos ||
           std::ranges::any_of(messages, [&](const auto& m) { return m.content.find(mark) != m.content.npos; });
  };
  while (is_used() && mark.back() != '\xBF') ++mark.back();
  return mark;
}

// Breaks the special tokens that stand in the text of a message: the mark comes behind their first character.
std::string broken_apart(const Tokenizer& tokenizer, std::string content, const std::string& mark,
                         const std::string& where) {
  for (std::size_t at = 0; const auto found = tokenizer.next_added(content, at, true);) {
    const std::string& special = tokenizer.entry(found->token).text;
    at = found->begin + special.size();
    if (!tokenizer.entry(found->token).is_special) continue;
    std::size_t first = 1;
    while (first < special.size() && (static_cast<unsigned char>(special[first]) & 0xC0u) == 0x80u) ++first;
    if (first == special.size())
      throw input_error(where,
                        "holds " + in_quotes(special) + ", which is a special token; expected a text without it");
    content.insert(found->begin + first, mark);
    at += mark.size();
  }
  return content;
}

}  // namespace

std::time_t parse_chat_date(const std::string& text, const std::string& where) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int length = 0;
  const bool is_read =
      text.size() == 10 && std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &length) == 3;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!is_read || length != 10 || year < 1900 || !date.ok())
    throw usage_error(where, "is " + in_quotes(text) + "; expected a date like 2026-11-29");
  std::tm noon{};
  noon.tm_year = year - 1900;
  noon.tm_mon = static_cast<int>(month) - 1;
  noon.tm_mday = static_cast<int>(day);
  noon.tm_hour = 12;
  noon.tm_isdst = -1;
  return std::mktime(&noon);
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages) const {
  if (!has_jinja())
    throw usage_error(where_,
                      "the chat template needs llama.cpp's Jinja, which this program was built without; "
                      "`./draftproof fetch jinja` brings it, and the next build has it");
  check(messages, where_);
  // A template is a program from a file: what does not end, or ends us, does so in a process of its own.
  if (!ends_within(kSeconds, kBytes, [&] { run_jinja(text_, messages, context_); }))
    throw input_error(where_, "the chat template crashes, or takes more than " + std::to_string(kSeconds) + " s or " +
                                  std::to_string(kBytes >> 20) + " MiB");
  std::string prompt;
  try {
    prompt = run_jinja(text_, messages, context_);
  } catch (const std::exception& error) {
    throw input_error(where_, "the chat template cannot write this conversation: " + reason_of(error.what()));
  }
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i].role == "user" && prompt.find(trimmed(messages[i].content)) == prompt.npos)
      throw input_error(where_, "the chat template leaves out the text of message " + std::to_string(i) +
                                    "; expected one for a chat of texts");
  return prompt;
}

std::vector<Token> ChatTemplate::encode(const Tokenizer& tokenizer, std::span<const ChatMessage> messages) const {
  const std::string mark = unused_mark(text_, messages);
  std::vector<ChatMessage> broken(messages.begin(), messages.end());
  for (std::size_t i = 0; i < broken.size(); ++i)
    broken[i].content = broken_apart(tokenizer, std::move(broken[i].content), mark, "message " + std::to_string(i));
  return tokenizer.encode(render(broken), {true, false, mark});
}

}  // namespace draftproof
