// One strict way to read a number from text: options, metadata and tables all use it.
//
// A number is decimal digits and nothing else: no blanks, no plus sign, no leading zeros ("010" is neither 8 nor 10),
// no trailing characters, not empty. A number with a fraction may have a point and an exponent, and is finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace draftproof {

// A whole number in [least, most]; nothing for any other text. The second one reads all of [0, 2^64).
std::optional<std::int64_t> read_integer(std::string_view text, std::int64_t least, std::int64_t most);
std::optional<std::uint64_t> read_unsigned(std::string_view text);

// A finite number, rounded to the nearest double; nothing for any other text, and for one that is too large or too
// small for a double.
std::optional<double> read_number(std::string_view text);

}  // namespace draftproof
