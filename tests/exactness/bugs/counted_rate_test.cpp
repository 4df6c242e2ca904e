#include "exactness/bugs/hunting.hpp"

#include "tests/support/test.hpp"

TEST_CASE("An event of the right rate is not accused and one of another rate is at an early look") {
  const auto every_fourth = [](std::uint64_t draw) { return draw % 4 == 0; };
  const Finding right = find_wrong_rate(0.25, every_fourth, 1 << 12, "fourths");
  CHECK_FALSE(right.caught);
  CHECK(right.cases == 1 << 12);
  const Finding wrong = find_wrong_rate(0.75, every_fourth, 1 << 12, "fourths");
  CHECK(wrong.caught);
  CHECK(wrong.cases == 64);
  CHECK(wrong.evidence == "16 fourths where 48 are expected");
}

TEST_CASE("An event that never comes is found as soon as its interval ends below the rate") {
  const Finding finding = find_wrong_rate(
      1e-2, [](std::uint64_t) { return false; }, 1 << 14, "hits");
  CHECK(finding.caught);
  CHECK(finding.cases == 4096);  // 1 - (alpha / 18)^(1 / 4096) is the first limit below 1e-2
}
