#include "cli/shared/terminal.hpp"

#include <unistd.h>

#include "tests/support/test.hpp"

namespace {

// The variables as a user would set them for one call; put back afterwards.
class Environment {
 public:
  explicit Environment(const char* name) : name_(name) {
    if (const char* value = std::getenv(name)) before_ = {true, value};
    unsetenv(name);
  }
  ~Environment() { before_.first ? setenv(name_, before_.second.c_str(), 1) : unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  void set(const char* value) { setenv(name_, value, 1); }

 private:
  const char* name_;
  std::pair<bool, std::string> before_{false, {}};
};

TEST_CASE("a palette paints only where colours are wanted") {
  CHECK(Palette(true).paint(Colour::green, "ok") == "\033[32mok\033[0m");
  CHECK(Palette(true).paint(Colour::bold, "ok") == "\033[1mok\033[0m");
  CHECK(Palette(true).paint(Colour::green, "").empty());
  CHECK(Palette(false).paint(Colour::green, "ok") == "ok");
}

TEST_CASE("a pipe is not a terminal and NO_COLOR wins over CLICOLOR_FORCE") {
  int ends[2] = {-1, -1};
  REQUIRE(pipe(ends) == 0);
  Environment no_color("NO_COLOR");
  Environment force("CLICOLOR_FORCE");
  CHECK_FALSE(is_terminal(ends[1]));
  CHECK_FALSE(wants_colour(ends[1]));
  CHECK(terminal_columns(ends[1]) == 80);
  force.set("1");
  CHECK(wants_colour(ends[1]));
  force.set("0");
  CHECK_FALSE(wants_colour(ends[1]));
  force.set("1");
  no_color.set("1");
  CHECK_FALSE(wants_colour(ends[1]));
  no_color.set("");  // present but empty does not count
  CHECK(wants_colour(ends[1]));
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a terminal wants colours unless it is dumb or NO_COLOR is set") {
  const int terminal = posix_openpt(0);
  REQUIRE(terminal >= 0);
  Environment no_color("NO_COLOR");
  Environment force("CLICOLOR_FORCE");
  Environment kind("TERM");
  CHECK_FALSE(wants_colour(terminal));
  kind.set("xterm");
  CHECK(wants_colour(terminal));
  kind.set("dumb");
  CHECK_FALSE(wants_colour(terminal));
  kind.set("xterm");
  no_color.set("1");
  CHECK(is_terminal(terminal));
  CHECK_FALSE(wants_colour(terminal));
  close(terminal);
}

}  // namespace
