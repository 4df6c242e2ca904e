// The gain of chains against the closed form of Leviathan et al., in exact fractions.
#include "sim/acceptance/rates.hpp"

#include <boost/multiprecision/cpp_int.hpp>

#include "exactness/rational.hpp"
#include "tests/support/test.hpp"

namespace {

Rational power(const Rational& a, int n) {
  Rational product(1);
  for (int i = 0; i < n; ++i) product *= a;
  return product;
}

// Theorem 3.8 of 2211.17192: (1 - a^(K+1)) / ((1 - a) (K c + 1)).
Rational textbook_speedup(const Rational& rate, const Rational& cost, int drafts) {
  return (1 - power(rate, drafts + 1)) / ((1 - rate) * (drafts * cost + 1));
}

std::vector<double> tokens_of(double rate, int drafts_max) {
  std::vector<double> tokens{1.0};
  std::vector<double> survival;
  for (int k = 1; k <= drafts_max; ++k) {
    survival.push_back(std::pow(rate, k));
    tokens.push_back(chain_tokens_per_step(survival, 1.0));
  }
  return tokens;
}

}  // namespace

TEST_CASE("chains of one rate gain what the closed form says, and the best K is that of exact fractions") {
  constexpr int kDraftsMax = 24;
  std::vector<int> best_found;
  for (int a = 1; a < 10; ++a)
    for (const int c : {0, 1, 3, 10, 25, 60, 99}) {  // hundredths
      const Rational rate = Rational(a) / 10;
      const Rational cost = Rational(c) / 100;
      const std::vector<double> tokens = tokens_of(a / 10.0, kDraftsMax);
      int best = 0;
      for (int k = 0; k <= kDraftsMax; ++k) {
        const Rational exact = textbook_speedup(rate, cost, k);
        CHECK(chain_speedup(tokens[static_cast<std::size_t>(k)], k, {c / 100.0, 1.0}) ==
              Approx(static_cast<double>(exact)).epsilon(1e-12));
        if (exact > textbook_speedup(rate, cost, best)) best = k;
      }
      // As good as the best one: with free drafts long chains differ by less than doubles do.
      const BestChain found = best_chain(tokens, {c / 100.0, 1.0});
      const Rational shortfall = 1 - textbook_speedup(rate, cost, found.drafts) / textbook_speedup(rate, cost, best);
      CHECK(shortfall < Rational(1, 1'000'000'000'000));
      if (c > 0) CHECK(found.drafts == best);
      CHECK((found.drafts == 0) == (rate <= cost));
      best_found.push_back(found.drafts);
    }
  CHECK(std::ranges::count(best_found, 0) > 5);
  CHECK(std::ranges::count(best_found, kDraftsMax) > 5);
}

TEST_CASE("a step without a draft costs nothing, and a draft costs what is drafted") {
  const std::vector<double> survival{0.5, 0.25};
  CHECK(chain_tokens_per_step(survival, 1.0) == 1.75);
  CHECK(chain_tokens_per_step(survival, 0.5) == 1.375);
  CHECK(chain_tokens_per_step(survival, 0.0) == 1.0);
  CHECK(chain_speedup(1.375, 2, {0.25, 0.5}) == 1.1);
  CHECK(best_chain(std::vector<double>{1.0}, {0.1, 1.0}).drafts == 0);
  // Equal speedups: fewer drafts.
  CHECK(best_chain(std::vector<double>{1.0, 1.5, 2.0}, {0.5, 1.0}).drafts == 0);
}
