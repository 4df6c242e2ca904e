#include "base/split.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a list is split into one part more than it has separators, and no part is lost") {
  using Parts = std::vector<std::string_view>;
  CHECK(split("4,8,16", ',') == Parts{"4", "8", "16"});
  CHECK(split("4", ',') == Parts{"4"});
  CHECK(split("", ',') == Parts{""});
  CHECK(split(",", ',') == Parts{"", ""});
  CHECK(split("a,,b,", ',') == Parts{"a", "", "b", ""});
  CHECK(split("a,b;c", ';') == Parts{"a,b", "c"});
}
