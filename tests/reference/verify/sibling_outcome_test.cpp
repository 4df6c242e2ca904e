#include "reference/verify/sibling_outcome.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a drawn token descends into the first sibling that holds it") {
  const std::vector<Token> siblings{4, 2, 4, 0};
  CHECK(descend_if_drafted(4, siblings) == SiblingOutcome{0, 4});
  CHECK(descend_if_drafted(0, siblings) == SiblingOutcome{3, 0});
  CHECK(descend_if_drafted(3, siblings) == SiblingOutcome{kNoSibling, 3});
  CHECK(descend_if_drafted(3, {}) == SiblingOutcome{kNoSibling, 3});
}

TEST_CASE("siblings are distinct by first appearance in their order") {
  CHECK(distinct_by_first_appearance(std::vector<Token>{7, 1, 7, 7, 0, 1}) == std::vector<std::int32_t>{0, 1, 4});
  CHECK(distinct_by_first_appearance(std::vector<Token>{3}) == std::vector<std::int32_t>{0});
  CHECK(distinct_by_first_appearance({}).empty());
}
