#include "sim/import/python_arguments.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"

namespace draftproof {
namespace {

constexpr std::string_view kQuotes = "'\"";
constexpr std::string_view kOpening = "([{";
constexpr std::string_view kClosing = ")]}";

bool is_one_of(char c, std::string_view characters) {
  return characters.find(c) != std::string_view::npos;
}
bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// Behind the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != quote; ++at)
    if (text[at] == '\\') ++at;
  return std::min(text.size(), at + 1);
}

// Behind the value that begins at `at`: before the comma, blank or closing bracket that no bracket of its own holds.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (is_one_of(c, kQuotes)) {
      at = end_of_string(text, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == ' ' || is_one_of(c, kClosing))) break;
    if (is_one_of(c, kOpening)) ++depth;
    if (is_one_of(c, kClosing)) --depth;
    ++at;
  }
  return at;
}

std::string_view without_quotes(std::string_view text) {
  if (text.size() < 2 || !is_one_of(text.front(), kQuotes) || text.back() != text.front()) return text;
  return text.substr(1, text.size() - 2);
}

}  // namespace

PythonArguments::PythonArguments(std::string_view text) {
  const auto skip_blanks = [&](std::size_t at) { return std::min(text.find_first_not_of(" \t", at), text.size()); };
  for (std::size_t at = 0; at < text.size();) {
    if (is_one_of(text[at], kClosing)) return;
    std::size_t end = at;
    if (is_one_of(text[at], kQuotes)) {
      end = end_of_string(text, at);
    } else {
      while (end < text.size() && is_of_name(text[end])) ++end;
    }
    const std::size_t sign = skip_blanks(end);
    if (end == at || sign >= text.size() || (text[sign] != '=' && text[sign] != ':')) {
      at = end == at ? at + 1 : end;  // no key
      continue;
    }
    const std::size_t begin = skip_blanks(sign + 1);
    const std::size_t behind = end_of_value(text, begin);
    items_.emplace_back(without_quotes(text.substr(at, end - at)), text.substr(begin, behind - begin));
    at = behind;
  }
}

std::optional<std::string> PythonArguments::value(std::string_view key) const {
  const auto found = std::ranges::find(items_, key, &std::pair<std::string_view, std::string_view>::first);
  if (found == items_.end() || found->second == "None" || found->second == "null") return std::nullopt;
  const std::string_view value = without_quotes(found->second);
  return value.empty() ? std::nullopt : std::optional(std::string(value));
}

bool PythonArguments::is_none(std::string_view key) const {
  return std::ranges::find(items_, std::pair(key, std::string_view("None"))) != items_.end();
}

std::optional<int> PythonArguments::count(std::string_view key, int least, int most, const std::string& where) const {
  const auto text = value(key);
  if (!text) return std::nullopt;
  const auto number = read_integer(*text, least, most);
  if (!number)
    throw input_error(where, std::string(key) + " is " + in_quotes(*text) + "; expected a number from " +
                                 std::to_string(least) + " to " + std::to_string(most));
  return static_cast<int>(*number);
}

std::optional<PythonArguments> PythonArguments::nested(std::string_view key) const {
  const auto found = std::ranges::find(items_, key, &std::pair<std::string_view, std::string_view>::first);
  if (found == items_.end()) return std::nullopt;
  const std::string_view text = without_quotes(found->second);  // JSON in a string, too
  const std::size_t opening = text.find_first_of(kOpening);
  if (opening == std::string_view::npos) return std::nullopt;
  return PythonArguments(text.substr(opening + 1));
}

std::optional<PythonArguments> arguments_behind(std::string_view line, std::string_view opening) {
  const std::size_t at = line.find(opening);
  if (at == std::string_view::npos) return std::nullopt;
  return PythonArguments(line.substr(at + opening.size()));
}

}  // namespace draftproof
