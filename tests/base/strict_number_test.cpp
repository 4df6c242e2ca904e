#include "base/strict_number.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace draftproof;

namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// What no number may look like.
const std::vector<std::string> kNoNumbers{"",    " ",     "-",    "+1",   "--1",  " 1",     "1 ",       "1\n",
                                          "010", "00",    "-01",  "0x1",  "1x",   "1,2",    "1_0",      "one",
                                          "nan", "inf",   "-inf", "1e",   "1e+",  "e1",     ".",        ".5",
                                          "-.5", "0x1p3", "NaN",  "1..2", "1.5.", "\u0663", {'1', '\0'}};

}  // namespace

TEST_CASE("A whole number is decimal digits without leading zeros, within its range") {
  CHECK(read_integer("0", 0, 10) == 0);
  CHECK(read_integer("10", 0, 10) == 10);
  CHECK(read_integer("-7", -7, 10) == -7);
  CHECK(read_integer("9223372036854775807", kLeast, kMost) == kMost);
  CHECK(read_integer("-9223372036854775808", kLeast, kMost) == kLeast);
  for (const std::string text : {"11", "-1", "-0", "1.0", "1e1", "9223372036854775808", "99999999999999999999"})
    CHECK_FALSE(read_integer(text, 0, 10));
  CHECK_FALSE(read_integer("9223372036854775808", kLeast, kMost));
  for (const std::string& text : kNoNumbers) {
    INFO("'" << text << "'");
    CHECK_FALSE(read_integer(text, kLeast, kMost));
  }
}

TEST_CASE("An unsigned number has no sign and is below 2^64") {
  CHECK(read_unsigned("0") == 0u);
  CHECK(read_unsigned("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
  for (const std::string text : {"18446744073709551616", "-1", "-0", "1.0", "1e3"}) CHECK_FALSE(read_unsigned(text));
  for (const std::string& text : kNoNumbers) CHECK_FALSE(read_unsigned(text));
}

TEST_CASE("A number is finite and rounded to the nearest double") {
  CHECK(read_number("0.1") == 0.1);
  CHECK(read_number("-2.5e-3") == -0.0025);
  CHECK(read_number("1E6") == 1e6);
  CHECK(read_number("5") == 5.0);
  CHECK(read_number("5e-324") == 5e-324);
  CHECK(read_number("1.7976931348623157e308") == std::numeric_limits<double>::max());
  for (const std::string text : {"1e309", "-1e309", "1e-400", "01.5"}) CHECK_FALSE(read_number(text));
  for (const std::string& text : kNoNumbers) {
    INFO("'" << text << "'");
    CHECK_FALSE(read_number(text));
  }
}
