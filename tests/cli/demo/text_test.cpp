// The colours of a generated text.
#include "cli/shared/painted_text.hpp"

#include "tests/support/test.hpp"

namespace {

TEST_CASE("a character has the colour of its first byte and runs share one escape") {
  Generation generation;
  generation.tokens = {'a', 'b', 0xc3, 0xa9, 'c', 'd'};
  using enum TokenOrigin;
  generation.origins = {accepted, accepted, recovered, accepted, bonus, bonus};
  CHECK(painted_text(generation, Palette(true)) == "\033[32mab\033[0m\033[31m\xc3\xa9\033[0m\033[36mcd\033[0m");
  CHECK(painted_text(generation, Palette(false)) ==
        "ab\xc3\xa9"
        "cd");
}

}  // namespace
