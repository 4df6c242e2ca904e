#include "reference/exactness/proof/output_law.hpp"

#include <catch2/catch.hpp>

using namespace draftproof;

namespace {

// p after every prefix: (1/4, 3/4).
const DenseMasses<Rational> kCoin{Rational(1) / 4, Rational(3) / 4};
const TargetLaw kTarget = [](const TokenString&) -> const DenseMasses<Rational>& { return kCoin; };

}  // namespace

TEST_CASE("A law that draws every token from the target has no difference at any length") {
  const OutputLaw one{{{0}, Rational(1) / 4}, {{1}, Rational(3) / 4}};
  CHECK_FALSE(first_difference(one, kTarget, 2));
  const OutputLaw two = compose(one, [&](const TokenString&) { return one; });
  CHECK(two.at({1, 0}) == Rational(3) / 16);
  CHECK_FALSE(first_difference(two, kTarget, 2));
  CHECK(total_variation(two, kTarget, 2) == 0);
}

TEST_CASE("Strings of different lengths are completed before they are compared") {
  // After a 0 stop; after a 1 one more token.
  const OutputLaw mixed{{{0}, Rational(1) / 4}, {{1, 0}, Rational(3) / 16}, {{1, 1}, Rational(9) / 16}};
  CHECK_FALSE(first_difference(mixed, kTarget, 2));
}

TEST_CASE("A law that is right in its first token and wrong in its second is refuted at the second") {
  const OutputLaw law{{{0}, Rational(1) / 4}, {{1, 0}, Rational(6) / 16}, {{1, 1}, Rational(6) / 16}};
  const auto difference = first_difference(law, kTarget, 2);
  REQUIRE(difference);
  CHECK(difference->prefix == TokenString{1});
  CHECK(difference->token == 0);
  CHECK(difference->emitted == Rational(6) / 16);
  CHECK(difference->expected == Rational(3) / 16);
  CHECK(total_variation(law, kTarget, 2) == Rational(3) / 16);
}

TEST_CASE("A law that loses probability differs at the empty string") {
  const auto difference = first_difference({{{0}, Rational(1) / 4}}, kTarget, 2);
  REQUIRE(difference);
  CHECK(difference->prefix.empty());
  CHECK(difference->emitted == Rational(1) / 4);
}
