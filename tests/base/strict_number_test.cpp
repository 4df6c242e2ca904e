#include "base/strict_number.hpp"

#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Texts that must not be read as a number.
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

TEST_CASE("A list of numbers is read whole, or its error names the place, the element and what was expected") {
  CHECK(read_numbers("0.5,-3,1e2", "--load") == std::vector<double>{0.5, -3.0, 100.0});
  CHECK(read_integers("1,2,4", "--threads", "number", {1, 8}) == std::vector<std::int64_t>{1, 2, 4});
  CHECK(read_ascending_ranges("0,10-12,20", "--drafter", "layer", {0, 30}) ==
        std::vector<std::int64_t>{0, 10, 11, 12, 20});
  const auto error = [](ErrorKind kind, auto read) { return error_of(kind, read); };
  CHECK(error(ErrorKind::usage, [] { read_numbers("4,", "--load"); }) == "--load: number 2 is ''; expected a number");
  CHECK(error(ErrorKind::usage, [] {
          read_numbers("0.2,1.5", "--rates", "rate", {0.0, 1.0});
        }) == "--rates: rate 2 is '1.5'; expected a number in [0, 1]");
  CHECK(error(ErrorKind::input, [] {
          read_integers("1,9", "f.json", "number", {1, 8}, ErrorKind::input);
        }) == "f.json: number 2 is '9'; expected a whole number in [1, 8]");
  const NumberRange temperatures{1.0, 2.0, true, "0 or a number from 1 to 2"};
  CHECK(read_numbers("0,1.5", "--temperatures", "number", temperatures) == std::vector<double>{0.0, 1.5});
  CHECK(error(ErrorKind::usage, [&] { read_numbers("0.5", "--temperatures", "number", temperatures); }) ==
        "--temperatures: number 1 is '0.5'; expected 0 or a number from 1 to 2");
  for (const char* const list : {"5-3", "3,3", "4,2-6", "1-", "-2", "1-31", ""})
    CHECK(error(ErrorKind::usage, [&] { read_ascending_ranges(list, "x", "layer", {0, 30}); }).find("x: layer ") == 0);
}
