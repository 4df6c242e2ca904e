#include "engine/grammar/gbnf.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/utf8.hpp"

namespace draftproof {
namespace {

constexpr int kParenthesesMax = 500;
constexpr std::int64_t kRepetitionsMax = 1'000'000;

bool is_letter_or_digit(std::uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Always eight digits, since EBNF takes all that follow.
std::string ebnf_character(std::uint32_t code_point) {
  if (is_letter_or_digit(code_point)) return std::string(1, static_cast<char>(code_point));
  char text[16];
  std::snprintf(text, sizeof text, "\\U%08x", static_cast<unsigned>(code_point));
  return text;
}

class GbnfReader {
 public:
  GbnfReader(std::string_view text, const std::string& where) : text_(text), where_(where) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }

  std::string ebnf() {
    skip_space();
    while (at_ < text_.size()) {
      const std::string name = rule_begins().value_or("");
      if (name.empty()) throw fail("expected NAME ::= at " + seen());
      const std::size_t rule = number_of(name);
      at_ = text_.find("::=", at_) + 3;
      skip_space();
      rules_[rule].body = alternatives(0);
      if (at_ < text_.size() && !rule_begins())
        throw fail("expected the rule of '" + name + "' to go on or end at " + seen());
    }
    const auto root = numbers_.find("root");
    if (root == numbers_.end() || rules_[root->second].body.empty())
      throw input_error(where_, "has no rule `root`; expected a grammar that begins with it");
    std::string ebnf;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i].body.empty()) {
        at_ = rules_[i].first_use;
        throw fail("the rule '" + rules_[i].name + "' is not there");
      }
      ebnf += name_of(i) + " ::= " + rules_[i].body + "\n";
    }
    return ebnf;
  }

 private:
  struct Rule {
    std::string name;
    std::size_t first_use;
    std::string body;
  };

  Error fail(const std::string& what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())), '\n');
    return input_error(where_, "line " + std::to_string(line) + ": " + what);
  }
  std::string seen() const {
    if (at_ >= text_.size()) return "its end";
    const std::string_view rest = text_.substr(at_, 20);
    return in_quotes(rest.substr(0, rest.find('\n')));
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  static bool is_of_name(char c) { return is_letter_or_digit(static_cast<unsigned char>(c)) || c == '-' || c == '_'; }

  std::size_t number_of(const std::string& name) {
    const auto [entry, is_new] = numbers_.emplace(name, rules_.size());
    if (is_new) rules_.push_back({name, at_, ""});
    return entry->second;
  }
  std::string name_of(std::size_t rule) const {
    return rules_[rule].name == "root" ? "root" : "r" + std::to_string(rule);
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      } else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::string name_here() const {
    std::size_t end = at_;
    while (end < text_.size() && is_of_name(text_[end])) ++end;
    return std::string(text_.substr(at_, end - at_));
  }
  // The name of a rule that begins here.
  std::optional<std::string> rule_begins() const {
    const std::string name = name_here();
    const std::size_t behind = text_.find_first_not_of(" \t", at_ + name.size());
    if (name.empty() || behind == text_.npos || !text_.substr(behind).starts_with("::=")) return std::nullopt;
    return name;
  }

  std::string alternatives(int depth) {
    if (depth > kParenthesesMax)
      throw fail("is nested deeper than " + std::to_string(kParenthesesMax) + " parentheses");
    std::string ebnf = sequence(depth);
    while (peek() == '|') {
      ++at_;
      skip_space();
      ebnf += " | " + sequence(depth);
    }
    return ebnf;
  }

  std::string sequence(int depth) {
    std::string ebnf;
    std::string last;  // what a count may follow
    int marks = 0;     // behind it
    while (at_ < text_.size()) {
      std::string item;
      if (std::string_view("*+?{").find(peek()) != std::string_view::npos) {
        if (last.empty()) throw fail("expected something that " + seen() + " repeats");
        if (++marks > kParenthesesMax)
          throw fail("repeats one thing more than " + std::to_string(kParenthesesMax) + " times over");
        last = counted(last);
        skip_space();
        continue;
      }
      if (peek() == '"') {
        item = literal();
      } else if (peek() == '[') {
        item = character_class();
      } else if (peek() == '.') {
        ++at_;
        item = "[\\U00000000-\\U0010ffff]";
      } else if (peek() == '(') {
        ++at_;
        skip_space();
        item = "(" + alternatives(depth + 1) + ")";
        if (peek() != ')') throw fail("expected ')' at " + seen());
        ++at_;
      } else if (is_of_name(peek())) {
        if (rule_begins()) break;
        const std::string name = name_here();
        item = name_of(number_of(name));
        at_ += name.size();
      } else if (peek() == '<' || peek() == '!') {
        throw fail("names a token of a vocabulary at " + seen() +
                   ", which is not supported; expected its text in quotes");
      } else {
        break;
      }
      skip_space();
      if (!last.empty()) ebnf += last + " ";
      last = std::move(item);
      marks = 0;
    }
    ebnf += last;
    return ebnf.empty() ? "\"\"" : ebnf;
  }

  // `item` as often as the mark behind it says.
  std::string counted(const std::string& item) {
    const char mark = peek();
    ++at_;
    if (mark != '{') return "(" + item + ")" + mark;
    const std::int64_t least = count();
    constexpr std::int64_t kAny = -1;
    std::int64_t most = least;
    skip_space();
    if (peek() == ',') {
      ++at_;
      skip_space();
      most = peek() >= '0' && peek() <= '9' ? count() : kAny;
      skip_space();
    }
    if (peek() != '}') throw fail("expected {N}, {N,} or {N,M} at " + seen());
    ++at_;
    if (most != kAny && most < least)
      throw fail("{" + std::to_string(least) + "," + std::to_string(most) +
                 "} is no range; expected the lower count first");
    if (most == 0) return "\"\"";
    return "(" + item + "){" + std::to_string(least) + "," + (most == kAny ? "" : std::to_string(most)) + "}";
  }
  std::int64_t count() {
    skip_space();
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    const auto number = read_integer(text_.substr(at_, end - at_), 0, kRepetitionsMax);
    if (!number) throw fail("expected a count up to " + std::to_string(kRepetitionsMax) + " at " + seen());
    at_ = end;
    return *number;
  }

  std::string literal() {
    std::string ebnf = "\"";
    for (++at_; peek() != '"';) ebnf += ebnf_character(character("a text in quotes"));
    ++at_;
    return ebnf + "\"";
  }

  // One without characters is an empty text, as in llama.cpp.
  std::string character_class() {
    std::string ebnf = "[";
    ++at_;
    if (peek() == '^') ebnf += text_[at_++];
    const std::size_t empty = ebnf.size();
    while (peek() != ']') {
      const std::uint32_t low = character("characters in brackets");
      std::uint32_t high = low;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        high = character("characters in brackets");
      }
      if (high < low) throw fail("has a range of characters whose end is below its begin, before " + seen());
      ebnf += ebnf_character(low);
      if (high > low) ebnf += "-" + ebnf_character(high);
    }
    ++at_;
    return ebnf.size() == empty ? "\"\"" : ebnf + "]";
  }

  std::uint32_t character(const char* of) {
    if (at_ >= text_.size()) throw fail(std::string("expected the end of ") + of);
    if (peek() != '\\') {
      const Utf8Character decoded = decode_utf8(text_.substr(at_));
      if (decoded.length == 0) throw fail("is no UTF-8");
      at_ += decoded.length;
      return decoded.code_point;
    }
    const char kind = peek(1);
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits > 0) {
      std::uint32_t value = 0;
      for (std::size_t i = 0; i < digits; ++i) {
        const std::size_t digit = std::string_view("0123456789abcdef0123456789ABCDEF").find(peek(2 + i));
        if (digit == std::string_view::npos || peek(2 + i) == '\0')
          throw fail("expected " + std::to_string(digits) + " hexadecimal digits at " + seen());
        value = 16 * value + static_cast<std::uint32_t>(digit % 16);
      }
      if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        throw fail("expected a character's number at " + seen());
      at_ += 2 + digits;
      return value;
    }
    constexpr std::string_view kNames = "trn\\\"[]-";
    constexpr std::string_view kValues = "\t\r\n\\\"[]-";
    const std::size_t index = kNames.find(kind);
    if (kind == '\0' || index == kNames.npos)
      throw fail("expected an escape of \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\] \\- at " + seen());
    at_ += 2;
    return static_cast<unsigned char>(kValues[index]);
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::map<std::string, std::size_t> numbers_;
  std::vector<Rule> rules_;
};

}  // namespace

std::string ebnf_of_gbnf(const std::string& gbnf, const std::string& where) {
  return GbnfReader(gbnf, where).ebnf();
}

std::string ebnf_string(const std::string& text) {
  std::string ebnf = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character decoded = decode_utf8(std::string_view(text).substr(i));
    if (decoded.length == 0) {
      ebnf += text[i++];  // no grammar takes it, and the library says so
    } else {
      ebnf += ebnf_character(decoded.code_point);
      i += decoded.length;
    }
  }
  return ebnf + "\"";
}

}  // namespace draftproof
