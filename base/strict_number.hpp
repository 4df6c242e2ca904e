// One strict way to read a number from text: options, metadata and tables all use it.
//
// A number is decimal digits and nothing else: no blanks, no plus sign, no leading zeros ("010" is neither 8 nor 10),
// no trailing characters, not empty. A number with a fraction may have a point and an exponent, and is finite.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace draftproof {

// Both ends belong to it.
struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

struct NumberRange {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
  bool or_zero = false;            // 0 is accepted although it is less than `least`
  const char* expected = nullptr;  // instead of "a number in [least, most]"
};

// A whole number in [least, most]; nothing for any other text. The second one reads all of [0, 2^64).
std::optional<std::int64_t> read_integer(std::string_view text, std::int64_t least, std::int64_t most);
std::optional<std::uint64_t> read_unsigned(std::string_view text);

// A finite number, rounded to the nearest double; nothing for any other text, and for one that is too large or too
// small for a double.
std::optional<double> read_number(std::string_view text);
std::optional<double> read_number(std::string_view text, const NumberRange& range);

// "a whole number in [1, 10]", "a number in (0, 1]": the end of a message.
std::string expected_text(const IntegerRange& range);
std::string expected_text(const NumberRange& range);

// A list as "4,8,16". Error at `where` naming the element, which is called `what`: "--batch: number 2 is 'x'; expected
// a whole number in [1, 64]".
std::vector<double> read_numbers(std::string_view list, const std::string& where, const char* what = "number",
                                 const NumberRange& range = {}, ErrorKind kind = ErrorKind::usage);
std::vector<std::int64_t> read_integers(std::string_view list, const std::string& where, const char* what = "number",
                                        const IntegerRange& range = {}, ErrorKind kind = ErrorKind::usage);
// The same of an ascending list in which "10-14" stands for five numbers, as "10-14,20". Error: numbers that do not
// rise, too.
std::vector<std::int64_t> read_ascending_ranges(std::string_view list, const std::string& where, const char* what,
                                                const IntegerRange& range);

}  // namespace draftproof
