// Checks, byte by byte, what may reach a terminal.
#include "base/printable.hpp"

#include "tests/support/test.hpp"

namespace {

const std::string kBad = "\xef\xbf\xbd";  // U+FFFD

TEST_CASE("text and line ends and tabs stay as they are") {
  const std::string text = "a\tb\nc ~ \xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82";  // two, three and four bytes
  CHECK(printable(text) == text);
  CHECK(printable("").empty());
}

TEST_CASE("control characters never reach the terminal") {
  CHECK(printable("\x1b[31mred") == kBad + "[31mred");
  CHECK(printable("\a\b\f\r\x7f") == kBad + kBad + kBad + kBad + kBad);
  CHECK(printable(std::string(1, '\0')) == kBad);
  CHECK(printable("\xc2\x9b") == kBad);  // U+009B begins an escape sequence too
  CHECK(printable("\xe2\x80\xae"
                  "abc") == kBad + "abc");  // U+202E turns the direction of text around
}

TEST_CASE("bytes that are not UTF-8 become one replacement character each") {
  CHECK(printable("\xff") == kBad);
  CHECK(printable("\x80\xbf") == kBad + kBad);
  CHECK(printable("\xc0\xaf") == kBad + kBad);                        // overlong
  CHECK(printable("\xed\xa0\x80") == kBad + kBad + kBad);             // surrogate
  CHECK(printable("\xf4\x90\x80\x80") == kBad + kBad + kBad + kBad);  // above U+10FFFF
  CHECK(printable("\xe2\x82") == kBad + kBad);                        // cut short
  CHECK(printable("\xe2\x82z") == kBad + kBad + "z");
}

TEST_CASE("a line has no line ends and no tabs, and those at its end are left out") {
  CHECK(printable_line("two\nlines\tof\x1b text\n\n") == "two lines of" + kBad + " text");
  CHECK(printable_line("\n").empty());
}

TEST_CASE("a shell command is what a shell splits into the arguments again") {
  const std::vector<std::string> arguments = {"plain", "two words", "", "it's", "$HOME `id` \\ \"", "--k=5", "*"};
  const auto result = run_command({"sh", "-c", "printf '<%s>' " + shell_command(arguments)});
  CHECK(result.out == "<plain><two words><><it's><$HOME `id` \\ \"><--k=5><*>");
  CHECK(shell_command({"draftproof", "demo", "--seed", "7"}) == "draftproof demo --seed 7");
  CHECK(shell_arguments(shell_command(arguments)) == arguments);
}

}  // namespace
