#include "sim/import/text_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// ESC [ parameters final byte (ECMA-48), and the control characters that are left.
std::string without_escapes(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      if (i + 1 < line.size() && line[i + 1] == '[') {
        i += 2;
        while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
      }
    } else if (static_cast<unsigned char>(line[i]) >= 0x20 || line[i] == '\t') {
      out += line[i];
    }
  }
  return out;
}

// Text behind `key` and its colon or equals sign; nothing where the key is not followed by one.
std::optional<std::string_view> behind(std::string_view line, std::string_view key) {
  for (std::size_t at = find_words(line, key); at != std::string_view::npos; at = find_words(line, key, at + 1)) {
    // A key is not the end of a longer word: "acceptance length" is not "xacceptance length".
    const char before = at == 0 ? ' ' : lower_case(line[at - 1]);
    if ((before >= 'a' && before <= 'z') || before == '_' || before == '-') continue;
    std::string_view rest = line.substr(at + key.size());
    const auto skip = [&](auto is) {
      while (!rest.empty() && is(rest.front())) rest.remove_prefix(1);
    };
    const auto is_wrapping = [](char c) { return is_blank(c) || c == '"' || c == '\'' || c == '\\'; };
    skip(is_wrapping);
    if (rest.empty() || (rest.front() != ':' && rest.front() != '=')) continue;
    rest.remove_prefix(1);
    skip(is_wrapping);
    return rest;
  }
  return std::nullopt;
}

struct Number {
  double value;
  std::size_t length;
  bool percent;
};

// A number that ends where it should: before a blank, a comma, a bracket, a quote, a semicolon or a percent sign.
std::optional<Number> leading_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  auto length = static_cast<std::size_t>(end - text.data());
  bool percent = false;
  std::size_t at = length;
  while (at < text.size() && is_blank(text[at])) ++at;
  if (at < text.size() && text[at] == '%') {
    percent = true;
    length = at + 1;
  }
  if (length < text.size() && std::string_view(" \t,;\"'\\)]}`|*").find(text[length]) == std::string_view::npos &&
      !(text[length] == '.' && (length + 1 == text.size() || is_blank(text[length + 1]))))
    return std::nullopt;
  return Number{value, length, percent};
}

Error malformed(const std::string& where, std::string_view key, std::string_view rest) {
  constexpr std::size_t kShown = 24;
  return input_error(where, std::string(key) + " is \"" + printable_line(rest.substr(0, kShown)) +
                                (rest.size() > kShown ? "..." : "") + "\"; expected a number");
}

std::optional<Number> number_behind(std::string_view line, std::string_view key, const std::string& where) {
  const auto rest = behind(line, key);
  if (!rest) return std::nullopt;
  const auto number = leading_number(*rest);
  if (!number || std::isinf(number->value)) throw malformed(where, key, *rest);
  return std::isnan(number->value) ? std::nullopt : number;
}

}  // namespace

TextLines::TextLines(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}

bool TextLines::next() {
  if (rest_.empty()) return false;
  const std::string_view line = rest_.substr(0, rest_.find('\n'));
  cut_ = line.size() == rest_.size();
  rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
  line_ = without_escapes(line);
  ++number_;
  return true;
}

std::string TextLines::where() const {
  return name_ + ", line " + std::to_string(number_);
}

std::string_view without_leading_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

std::optional<int> number_of_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    if (at > 0 && std::string_view(" \t[(|`>").find(line[at - 1]) == std::string_view::npos) continue;
    std::size_t begin = at + word.size();
    if (begin < line.size() && line[begin] == ' ') ++begin;
    int number = 0;
    const auto [end, error] = std::from_chars(line.data() + begin, line.data() + line.size(), number);
    const char next = end == line.data() + line.size() ? ' ' : *end;
    if (error == std::errc{} && number >= 0 && std::string_view(" ]:,)_|").find(next) != std::string_view::npos)
      return number;
  }
  return std::nullopt;
}

std::optional<int> time_of_day(std::string_view line) {
  const auto two = [&](std::size_t at) -> int {
    const auto digit = [&](std::size_t i) { return line[i] >= '0' && line[i] <= '9' ? line[i] - '0' : -100; };
    return 10 * digit(at) + digit(at + 1);
  };
  for (std::size_t at = 0; at + 8 <= line.size(); ++at) {
    if (line[at + 2] != ':' || line[at + 5] != ':') continue;
    const int hours = two(at), minutes = two(at + 3), seconds = two(at + 6);
    if (hours >= 0 && minutes >= 0 && seconds >= 0) return (hours * 60 + minutes) * 60 + seconds;
  }
  return std::nullopt;
}

std::size_t find_words(std::string_view text, std::string_view words, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const auto found = std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), words.begin(),
                                 words.end(), [](char a, char b) { return lower_case(a) == lower_case(b); });
  return found == text.end() ? std::string_view::npos : static_cast<std::size_t>(found - text.begin());
}

bool has_words(std::string_view text, std::string_view words) {
  return find_words(text, words) != std::string_view::npos;
}

std::optional<double> field(std::string_view line, std::string_view key, const std::string& where) {
  const auto number = number_behind(line, key, where);
  return number ? std::optional(number->value) : std::nullopt;
}

std::optional<double> share_field(std::string_view line, std::string_view key, const std::string& where) {
  const auto number = number_behind(line, key, where);
  if (!number) return std::nullopt;
  const double share = number->percent ? number->value / 100.0 : number->value;
  if (!(share >= 0.0 && share <= 1.0))
    throw input_error(where, std::string(key) + " is " + std::to_string(number->value) +
                                 (number->percent ? "%; expected 0 to 100%" : "; expected a number in [0, 1]"));
  return share;
}

std::optional<std::int64_t> count_field(std::string_view line, std::string_view key, const std::string& where) {
  const auto number = field(line, key, where);
  if (!number) return std::nullopt;
  if (*number < 0.0 || *number > 1e15 || *number != std::floor(*number))
    throw input_error(where, std::string(key) + " is " + std::to_string(*number) + "; expected a count");
  return static_cast<std::int64_t>(*number);
}

std::vector<double> list_field(std::string_view line, std::string_view key, const std::string& where) {
  const auto found = behind(line, key);
  std::vector<double> numbers;
  if (!found) return numbers;
  std::string_view rest = *found;
  if (rest.starts_with('[') || rest.starts_with('(')) rest.remove_prefix(1);
  const auto begins_number = [](char c) { return (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  for (;;) {
    while (!rest.empty() && (is_blank(rest.front()) || rest.front() == ',')) rest.remove_prefix(1);
    if (rest.empty() || !begins_number(rest.front())) break;
    const auto number = leading_number(rest);
    if (!number) throw malformed(where, key, rest);
    numbers.push_back(number->percent ? number->value / 100.0 : number->value);
    rest.remove_prefix(number->length);
  }
  if (numbers.empty()) {
    if (has_words(rest.substr(0, 3), "nan")) return numbers;
    throw malformed(where, key, rest);
  }
  return numbers;
}

}  // namespace draftproof
