// Lines of logs as programs and shells leave them, and "name: number" fields within a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

// The lines of a text in UTF-8, one after the other: without carriage returns, colours and other escape sequences.
class TextLines {
 public:
  TextLines(std::string_view text, std::string name);

  bool next();
  const std::string& line() const { return line_; }
  std::int64_t number() const { return number_; }
  std::string where() const;  // "NAME, line 12"
  // The text ends within this line: it may have been cut while it was written.
  bool is_cut() const { return cut_; }

 private:
  std::string_view rest_;
  std::string name_;
  std::string line_;
  std::int64_t number_ = 0;
  bool cut_ = false;
};

// The text from its first character on that is neither blank nor line end.
std::string_view without_leading_blanks(std::string_view text);

// The number behind a word of a prefix, "TP" of "[12:00:01 TP1]", "Engine" of "Engine 003:"; nothing where there is
// none.
std::optional<int> number_of_word(std::string_view line, std::string_view word);

// Seconds of the first "12:30:05" in a line; nothing where there is none.
std::optional<int> time_of_day(std::string_view line);

// Without regard to upper and lower case (ASCII); npos where it is not.
std::size_t find_words(std::string_view text, std::string_view words, std::size_t from = 0);
bool has_words(std::string_view text, std::string_view words);

// The number behind `key` and a colon or equals sign, blanks and quotes allowed around it: 2.62, 1e3, 32.4%. Nothing
// where the key is not there, and for nan. Errors (input) at `where`: anything else behind the key.
std::optional<double> field(std::string_view line, std::string_view key, const std::string& where);
// A percentage, or a share: 32.4% and 0.324 are 0.324.
std::optional<double> share_field(std::string_view line, std::string_view key, const std::string& where);
// A whole number, 141 or 141.0, as counters are printed.
std::optional<std::int64_t> count_field(std::string_view line, std::string_view key, const std::string& where);
// The numbers behind `key`, separated by commas or blanks, brackets allowed around them.
std::vector<double> list_field(std::string_view line, std::string_view key, const std::string& where);

}  // namespace draftproof
