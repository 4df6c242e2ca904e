// Damages a text file as accidents, other programs and ill-wishers do: bytes, words and lines change, vanish, come
// twice or from another file.
#pragma once

#include <cctype>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/test_random.hpp"

namespace draftproof::testing {

class Damage {
 public:
  explicit Damage(std::uint64_t seed) : random_(seed) {}

  // One of `sound` with one to four damages.
  std::string of(const std::vector<std::string>& sound) {
    std::string text = one_of(sound);
    for (std::int64_t i = 1 + random_.below(4); i > 0; --i) change(text, one_of(sound));
    return text;
  }

 private:
  const std::string& one_of(const std::vector<std::string>& texts) {
    return texts[static_cast<std::size_t>(random_.below(std::ssize(texts)))];
  }
  std::size_t place(const std::string& text) { return static_cast<std::size_t>(random_.below(std::ssize(text) + 1)); }

  // Words that readers stumble over: numbers at the ends of their ranges, other types, format syntax, invalid UTF-8.
  std::string odd_word() {
    using namespace std::string_literals;
    static const std::vector<std::string> kWords = [] {
      std::istringstream spaced(
          R"(0 -1 1 -0.0 0.5 1e999 -1e999 1e-999 1e18 1e308 nan inf 2147483648 -2147483649 4294967296 )"
          R"(9223372036854775807 -9223372036854775808 18446744073709551616 010 0x7f 1_000 null true false "" "x" '' [] )"
          R"({} [[]] {"a":1} , ; = " \u0000 \ud800 .. /dev/zero %s%n (?:a+)+b \\C (?=a) a{9999} (a|aa)*$ 1979-05-27 1:2)");
      std::vector<std::string> words{std::istream_iterator<std::string>(spaced), {}};
      for (const std::string& other :
           {"[1, 2]"s, "\n"s, "\r"s, "\t"s, "\0"s, "\xff"s, "\xef\xbb\xbf"s, "\xed\xa0\x80"s, "\xe2\x96\x81"s})
        words.push_back(other);
      return words;
    }();
    if (random_.chance(0.02))
      return std::string(static_cast<std::size_t>(random_.below(4000)), random_.chance(0.5) ? '[' : 'a');
    return one_of(kWords);
  }

  // A run of letters, digits and what numbers have, at or behind `from`.
  static std::pair<std::size_t, std::size_t> word_behind(const std::string& text, std::size_t from) {
    constexpr std::string_view kOthers = "_-+.";
    const auto in_word = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || kOthers.find(c) != kOthers.npos;
    };
    while (from < text.size() && !in_word(text[from])) ++from;
    std::size_t end = from;
    while (end < text.size() && in_word(text[end])) ++end;
    return {from, end - from};
  }

  static std::pair<std::size_t, std::size_t> line_around(const std::string& text, std::size_t at) {
    const std::size_t before = at == 0 ? text.npos : text.rfind('\n', at - 1);
    const std::size_t begin = before == text.npos ? 0 : before + 1;
    const std::size_t end = text.find('\n', at);
    return {begin, (end == text.npos ? text.size() : end + 1) - begin};
  }

  void change(std::string& text, const std::string& other) {
    const std::size_t at = place(text);
    const std::size_t from = place(other);
    const auto [word, word_size] = word_behind(text, at);
    const auto [line, line_size] = line_around(text, at);
    switch (random_.below(12)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random_.below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random_.below(256));
        break;
      case 2:
        text.erase(at, static_cast<std::size_t>(random_.below(random_.chance(0.8) ? 8 : 400)));
        break;
      case 3:
        text.insert(at, other, from, static_cast<std::size_t>(random_.below(60)));
        break;
      case 4:
        if (random_.chance(0.3)) text.resize(at);
        break;
      case 5:
        text.insert(at, odd_word());
        break;
      case 6:
      case 7:
      case 8:
        text.replace(word, word_size, odd_word());
        break;
      case 9: {  // a word of the other one, which is mostly of the same kind
        const auto [begin, size] = word_behind(other, from);
        text.replace(word, word_size, other, begin, size);
        break;
      }
      case 10: {  // a line of its own once more, or one of the other
        const std::size_t to = line_around(text, place(text)).first;
        const auto [begin, size] = line_around(other, from);
        text.insert(to, random_.chance(0.5) ? text.substr(line, line_size) : other.substr(begin, size));
        break;
      }
      default:
        text.erase(line, line_size);
    }
  }

  TestRandom random_;
};

}  // namespace draftproof::testing
