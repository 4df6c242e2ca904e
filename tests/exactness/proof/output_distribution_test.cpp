#include "exactness/proof/output_distribution.hpp"

#include "tests/support/test.hpp"

namespace {

// p after every prefix: (1/4, 3/4).
const DenseMasses<Rational> kCoin{Rational(1) / 4, Rational(3) / 4};
const TargetDistribution kTarget = [](const TokenString&) -> const DenseMasses<Rational>& { return kCoin; };

}  // namespace

TEST_CASE("A distribution that draws every token from the target has no difference at any length") {
  const OutputDistribution one{{{0}, Rational(1) / 4}, {{1}, Rational(3) / 4}};
  CHECK_FALSE(first_difference(one, kTarget, 2));
  const OutputDistribution two = compose(one, [&](const TokenString&) { return one; });
  CHECK(two.at({1, 0}) == Rational(3) / 16);
  CHECK_FALSE(first_difference(two, kTarget, 2));
  CHECK(total_variation(two, kTarget, 2) == 0);
}

TEST_CASE("Strings of different lengths are completed before they are compared") {
  // After a 0 stop; after a 1 one more token.
  const OutputDistribution mixed{{{0}, Rational(1) / 4}, {{1, 0}, Rational(3) / 16}, {{1, 1}, Rational(9) / 16}};
  CHECK_FALSE(first_difference(mixed, kTarget, 2));
}

TEST_CASE("A distribution that is right in its first token and wrong in its second is refuted at the second") {
  const OutputDistribution distribution{{{0}, Rational(1) / 4}, {{1, 0}, Rational(6) / 16}, {{1, 1}, Rational(6) / 16}};
  const auto difference = first_difference(distribution, kTarget, 2);
  REQUIRE(difference);
  CHECK(difference->prefix == TokenString{1});
  CHECK(difference->token == 0);
  CHECK(difference->emitted == Rational(6) / 16);
  CHECK(difference->expected == Rational(3) / 16);
  CHECK(total_variation(distribution, kTarget, 2) == Rational(3) / 16);
}

TEST_CASE("A distribution that loses probability differs at the empty string") {
  const auto difference = first_difference({{{0}, Rational(1) / 4}}, kTarget, 2);
  REQUIRE(difference);
  CHECK(difference->prefix.empty());
  CHECK(difference->emitted == Rational(1) / 4);
}
