#include "base/printable.hpp"

#include <cstdio>

#include <algorithm>
#include <cstdint>

#include "base/utf8.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kQuotedBytesMax = 80;           // of a name or value that is repeated in a message
constexpr const char* kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool is_harmless(std::uint32_t code_point) {
  if (code_point == '\n' || code_point == '\t') return true;
  const bool control = code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
  const bool reverses =
      (code_point >= 0x202a && code_point <= 0x202e) || (code_point >= 0x2066 && code_point <= 0x2069);
  return !control && !reverses;
}

std::string quoted_for_shell(const std::string& argument) {
  static const std::string kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::vector<PrintableCharacter> printable_characters(std::string_view bytes) {
  std::vector<PrintableCharacter> characters;
  for (std::size_t i = 0; i < bytes.size();) {
    const Utf8Character decoded = decode_utf8(bytes.substr(i));
    const bool stays = decoded.length > 0 && is_harmless(decoded.code_point);
    characters.push_back({stays ? std::string(bytes.substr(i, decoded.length)) : kReplacement, i});
    i += decoded.length > 0 ? decoded.length : 1;
  }
  return characters;
}

std::string printable(std::string_view bytes) {
  std::string text;
  for (const PrintableCharacter& character : printable_characters(bytes)) text += character.text;
  return text;
}

std::string printable_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::string line = printable(text);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

std::string in_quotes(std::string_view text) {
  std::size_t size = std::min(text.size(), kQuotedBytesMax);
  // Never cut inside a multi-byte character: continuation bytes are 10xxxxxx.
  while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  std::string quoted = "'";
  for (const PrintableCharacter& c : printable_characters(text.substr(0, size)))
    quoted += c.text == "\n" || c.text == "\t" ? "\uFFFD" : c.text;
  return quoted + (size < text.size() ? "...'" : "'");
}

std::string shell_command(const std::vector<std::string>& arguments) {
  std::string command;
  for (const std::string& argument : arguments) {
    if (!command.empty()) command += ' ';
    command += quoted_for_shell(argument);
  }
  return command;
}

std::vector<std::string> shell_arguments(std::string_view command) {
  std::vector<std::string> arguments;
  bool open = false;    // the last argument goes on
  bool quoted = false;  // within single quotes
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (!quoted && c == ' ') {
      open = false;
      continue;
    }
    if (!open) arguments.emplace_back();
    open = true;
    if (c == '\'') {
      quoted = !quoted;
    } else if (!quoted && c == '\\' && i + 1 < command.size()) {
      arguments.back() += command[++i];
    } else {
      arguments.back() += c;
    }
  }
  return arguments;
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace draftproof
