#include "base/strict_number.hpp"

#include <charconv>
#include <cmath>

#include "base/printable.hpp"
#include "base/split.hpp"

namespace draftproof {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Digits follow the sign, and the first of several is not 0.
bool begins_well(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  return text.front() != '0' || text.size() == 1 || !is_digit(text[1]);
}

template <class Number>
std::optional<Number> read_all(std::string_view text) {
  if (!begins_well(text)) return std::nullopt;
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end != last) return std::nullopt;
  return number;
}

// Calls read(element) for each; where it gives nothing, that element is the one that the error names.
template <class Read>
void read_list(std::string_view list, const std::string& where, const char* what, const std::string& expected,
               ErrorKind kind, Read read) {
  std::size_t place = 0;
  for (const std::string_view element : split(list, ',')) {
    ++place;
    if (!read(element))
      throw Error(kind, where,
                  what + (" " + std::to_string(place)) + " is " + in_quotes(element) + "; expected " + expected);
  }
}

}  // namespace

std::optional<std::int64_t> read_integer(std::string_view text, std::int64_t least, std::int64_t most) {
  const auto number = read_all<std::int64_t>(text);
  return number && *number >= least && *number <= most && text != "-0" ? number : std::nullopt;
}

std::optional<std::uint64_t> read_unsigned(std::string_view text) {
  return read_all<std::uint64_t>(text);
}

std::optional<double> read_number(std::string_view text) {
  const auto number = read_all<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<double> read_number(std::string_view text, const NumberRange& range) {
  const auto number = read_number(text);
  const bool fits = number && ((*number >= range.least && *number <= range.most) || (range.or_zero && *number == 0.0));
  return fits ? number : std::nullopt;
}

std::string expected_text(const IntegerRange& range) {
  return "a whole number in [" + std::to_string(range.least) + ", " + std::to_string(range.most) + "]";
}

std::string expected_text(const NumberRange& range) {
  if (range.expected != nullptr) return range.expected;
  const NumberRange any;
  if (range.least == any.least && range.most == any.most) return "a number";
  return "a number in [" + number("%g", range.least) + ", " + number("%g", range.most) + "]";
}

std::vector<double> read_numbers(std::string_view list, const std::string& where, const char* what,
                                 const NumberRange& range, ErrorKind kind) {
  std::vector<double> numbers;
  read_list(list, where, what, expected_text(range), kind, [&](std::string_view element) {
    const auto read = read_number(element, range);
    if (read) numbers.push_back(*read);
    return read.has_value();
  });
  return numbers;
}

std::vector<std::int64_t> read_integers(std::string_view list, const std::string& where, const char* what,
                                        const IntegerRange& range, ErrorKind kind) {
  std::vector<std::int64_t> numbers;
  read_list(list, where, what, expected_text(range), kind, [&](std::string_view element) {
    const auto read = read_integer(element, range.least, range.most);
    if (read) numbers.push_back(*read);
    return read.has_value();
  });
  return numbers;
}

std::vector<std::int64_t> read_ascending_ranges(std::string_view list, const std::string& where, const char* what,
                                                const IntegerRange& range) {
  std::vector<std::int64_t> numbers;
  const std::string expected = expected_text(range) + " above the one before it, or a range of them, as 10-14";
  read_list(list, where, what, expected, ErrorKind::usage, [&](std::string_view element) {
    const std::size_t dash = element.find('-');
    const auto first = read_integer(element.substr(0, dash), range.least, range.most);
    const auto last =
        dash == std::string_view::npos ? first : read_integer(element.substr(dash + 1), range.least, range.most);
    if (!first || !last || *last < *first || (!numbers.empty() && *first <= numbers.back())) return false;
    for (std::int64_t number = *first; number <= *last; ++number) numbers.push_back(number);
    return true;
  });
  return numbers;
}

}  // namespace draftproof
