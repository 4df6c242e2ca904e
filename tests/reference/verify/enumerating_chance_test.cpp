#include "reference/verify/enumerating_chance.hpp"

#include "exactness/rational.hpp"
#include "tests/support/test.hpp"

TEST_CASE("enumeration visits every outcome once with its probability") {
  // A coin of 2/3; on heads a three-way draw with one impossible token, on tails a uniform choice below 4.
  std::map<std::pair<bool, std::uint64_t>, Rational> distribution;
  EnumeratingChance<Rational> chance;
  int paths = 0;
  do {
    const bool heads = chance.accept(Rational(2, 5), Rational(3, 5), 0);
    const std::vector<Rational> masses{Rational(1, 2), 0, Rational(3, 2)};
    const std::uint64_t value =
        heads ? static_cast<std::uint64_t>(chance.draw(masses, 0, Purpose::residual)) : chance.below(4, 0);
    distribution[{heads, value}] += chance.probability();
    ++paths;
  } while (chance.next());
  CHECK(paths == 6);
  CHECK(distribution[{true, 0}] == Rational(2, 3) * Rational(1, 4));
  CHECK(distribution[{true, 2}] == Rational(2, 3) * Rational(3, 4));
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(distribution[{false, i}] == Rational(1, 12));
  CHECK(distribution.size() == 6);
  CHECK_FALSE(chance.next());
}

TEST_CASE("the enumerated coin is certain where the rule is certain") {
  const auto paths_of = [](const Rational& p, const Rational& q, bool* accepted) {
    EnumeratingChance<Rational> chance;
    int paths = 0;
    do {
      *accepted = chance.accept(p, q, 0);
      ++paths;
    } while (chance.next());
    return paths;
  };
  bool accepted = false;
  CHECK(paths_of(Rational(1, 3), Rational(1, 3), &accepted) == 1);
  CHECK(accepted);
  CHECK(paths_of(Rational(2, 3), Rational(1, 3), &accepted) == 1);
  CHECK(accepted);
  CHECK(paths_of(0, Rational(1, 3), &accepted) == 1);
  CHECK_FALSE(accepted);
  CHECK(paths_of(Rational(1, 3), 0, &accepted) == 1);  // a draft that q cannot produce
  CHECK_FALSE(accepted);
  CHECK(paths_of(Rational(1, 3), Rational(2, 3), &accepted) == 2);
}

TEST_CASE("a draw from nothing is a fault of the algorithm and throws") {
  EnumeratingChance<Rational> chance;
  CHECK_THROWS_AS(chance.draw({Rational(0), Rational(0)}, 0, Purpose::residual), std::logic_error);
}

TEST_CASE("the exact residual is the positive part or the target where that is empty") {
  const DenseRows<Rational> p{{{Rational(1, 2), Rational(1, 4), Rational(1, 4)}}};
  const DenseRows<Rational> q{{{Rational(1, 4), Rational(1, 2), Rational(1, 4)}}};
  CHECK(residual_masses(p, q, 0) == std::vector<Rational>{Rational(1, 4), 0, 0});
  CHECK(residual_masses(p, p, 0) == p.rows[0]);
}

TEST_CASE("one address used twice is one random number") {
  // A coin of 1/2 and a draw of (1/2, 1/2) from one word agree always; from two words half of the time.
  const auto agreement = [](Purpose second, std::size_t* reused) {
    EnumeratingChance<Rational> chance;
    Rational agree = 0;
    do {
      const bool heads = chance.accept(Rational(1, 2), 1, 0);
      const Token token = chance.draw({Rational(1, 2), Rational(1, 2)}, 0, second);
      if (heads == (token == 0)) agree += chance.probability();
      *reused = chance.reused();
    } while (chance.next());
    return agree;
  };
  std::size_t reused = 0;
  CHECK(agreement(Purpose::accept, &reused) == 1);
  CHECK(reused == 1);
  CHECK(agreement(Purpose::residual, &reused) == Rational(1, 2));
  CHECK(reused == 0);
}
