// The bound against a minimum over all sets of tokens, and the rules against the bound.
#include "reference/verify/optimal_transport.hpp"

#include <catch2/catch.hpp>

#include "tests/reference/verify/sibling_rules/rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

using WithinDistribution = std::map<std::uint32_t, Rational>;  // set of drafted tokens as bits, its probability

// The distribution of the set of tokens that k drafts hold.
WithinDistribution drafted_sets(const Masses& q, std::int32_t k, Drafting drafting) {
  WithinDistribution distribution;
  EnumeratingChance<Rational> chance;
  do {
    std::uint32_t set = 0;
    for (const Token token : draft_siblings(q, k, drafting, chance)) set |= 1u << token;
    distribution[set] += chance.probability();
  } while (chance.next());
  return distribution;
}

// min over every H of p(H) + 1 - Pr(all drafts in H), by the definition.
Rational brute_force(const Masses& p, const Masses& q, std::int32_t k, Drafting drafting) {
  const WithinDistribution sets = drafted_sets(q, k, drafting);
  Rational best(2);
  for (std::uint32_t h = 0; h < 1u << p.size(); ++h) {
    Rational value(1);
    for (std::size_t x = 0; x < p.size(); ++x)
      if (h >> x & 1) value += p[x];
    for (const auto& [set, probability] : sets)
      if ((set & ~h) == 0) value -= probability;
    best = std::min(best, value);
  }
  return best;
}

Rational power(const Rational& base, std::size_t exponent) {
  Rational out(1);
  for (; exponent > 0; --exponent) out *= base;
  return out;
}

}  // namespace

TEST_CASE("the transport bound is the minimum over all sets of tokens") {
  for (const ModelKind kind : kModelKinds) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Models models(4, seed, kind);
      const Masses& p = models.target({});
      const Masses& q = models.draft({});
      for (std::int32_t k = 1; k <= 3; ++k) {
        CAPTURE(name_of(kind), seed, k);
        const auto size = static_cast<std::size_t>(k);
        CHECK(optimal_acceptance_with_replacement(p, q, size) == brute_force(p, q, k, Drafting::with_replacement));
        CHECK(optimal_acceptance_without_replacement(p, q, size) ==
              brute_force(p, q, k, Drafting::without_replacement));
      }
    }
  }
}

TEST_CASE("the transport bound gives the golden acceptances") {
  const Rational with[] = {{7, 10}, {43, 50}, {247, 250}};
  const Rational without[] = {{7, 10}, {69, 70}, {1, 1}};
  for (std::size_t k = 1; k <= 3; ++k) {
    CHECK(optimal_acceptance_with_replacement(golden_p(), golden_q(), k) == with[k - 1]);
    CHECK(optimal_acceptance_without_replacement(golden_p(), golden_q(), k) == without[k - 1]);
  }
}

TEST_CASE("the transport bound has its limits") {
  for (const std::size_t k : {1, 2, 4}) {
    CHECK(optimal_acceptance_with_replacement(golden_p(), golden_p(), k) == 1);
    CHECK(optimal_acceptance_without_replacement(golden_p(), golden_p(), k) == 1);
    const Masses left{1, 0};
    const Masses right{0, 1};
    CHECK(optimal_acceptance_with_replacement(left, right, k) == 0);
    CHECK(optimal_acceptance_without_replacement(left, right, k) == 0);
  }
  // Without drafts nothing is accepted.
  CHECK(optimal_acceptance_with_replacement(golden_p(), golden_q(), 0) == 0);
  CHECK(optimal_acceptance_without_replacement(golden_p(), golden_q(), 0) == 0);
  // A vocabulary of one.
  CHECK(optimal_acceptance_with_replacement(Masses{1}, Masses{1}, 2) == 1);
  // More drafts than q has tokens.
  CHECK(optimal_acceptance_without_replacement(golden_p(), Masses{1, 0, 0}, 3) == golden_p()[0]);
}

TEST_CASE("for two independent drafts the bound is the closed form over selections") {
  // Khisti et al. 2410.18234: min over S of p(S) + (1 - q(S))^2 + 2 q(S) (1 - q(S)).
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Models models(4, seed, ModelKind::zeros);
    const Masses& p = models.target({});
    const Masses& q = models.draft({});
    Rational best(2);
    for (std::uint32_t s = 0; s < 16; ++s) {
      Rational ps(0);
      Rational qs(0);
      for (std::size_t x = 0; x < 4; ++x) {
        if ((s >> x & 1) == 0) continue;
        ps += p[x];
        qs += q[x];
      }
      best = std::min(best, Rational(ps + (1 - qs) * (1 - qs) + 2 * qs * (1 - qs)));
    }
    CHECK(optimal_acceptance_with_replacement(p, q, 2) == best);
  }
}

TEST_CASE("acceptances are ordered as theory has them") {
  for (const ModelKind kind : kModelKinds) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const Models models(3, seed, kind);
      const Masses& p = models.target({});
      const Masses& q = models.draft({});
      for (std::int32_t k = 1; k <= 3; ++k) {
        CAPTURE(name_of(kind), seed, k);
        const auto size = static_cast<std::size_t>(k);
        const auto with = [&](const auto& rule) {
          return node_distribution(p, q, k, Drafting::with_replacement, rule).acceptance;
        };
        const Rational best_with = optimal_acceptance_with_replacement(p, q, size);
        const Rational best_without = optimal_acceptance_without_replacement(p, q, size);
        const Rational rrs = with(kRrs);
        const Rational rrsw = node_distribution(p, q, k, Drafting::without_replacement, kRrsw).acceptance;
        const Rational k_seq = with(kKSeq);
        CHECK(with(kNaive) <= rrs);
        CHECK(rrs <= best_with);
        CHECK(best_with <= best_without);
        CHECK(rrsw <= best_without);
        CHECK(with(kRrsw) <= best_with);
        CHECK(k_seq <= best_with);
        // The guarantee is for rho* itself; ours is above it by at most the width of the bisection.
        const Rational guaranteed = 1 - power(1 - Rational(1, k), size);
        CHECK(guaranteed * best_with <= k_seq + Rational(1, 100000));
        CHECK(node_distribution(p, q, k, Drafting::greedy, kGreedyDraft).acceptance ==
              brute_force(p, q, k, Drafting::greedy));
        if (k > 1) continue;
        for (const Rational& acceptance : {rrs, rrsw, k_seq, best_without}) CHECK(acceptance == overlap(p, q));
      }
    }
  }
}

TEST_CASE("the transport bound of doubles is that of the fractions up to rounding") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Models exact(5, seed, ModelKind::zeros);
    const ModelPair<double> rounded(5, seed, ModelKind::zeros);
    for (std::size_t k = 1; k <= 3; ++k) {
      CHECK(optimal_acceptance_with_replacement(rounded.target({}), rounded.draft({}), k) ==
            Approx(static_cast<double>(optimal_acceptance_with_replacement(exact.target({}), exact.draft({}), k)))
                .margin(1e-14));
      CHECK(optimal_acceptance_without_replacement(rounded.target({}), rounded.draft({}), k) ==
            Approx(static_cast<double>(optimal_acceptance_without_replacement(exact.target({}), exact.draft({}), k)))
                .margin(1e-14));
    }
  }
}

TEST_CASE("tokens of equal ratio stand in order of their ids") {
  const Masses p{Rational(1, 4), Rational(1, 4), 0, Rational(1, 2), 0};
  const Masses q{Rational(1, 4), Rational(1, 4), Rational(1, 2), 0, 0};
  CHECK(tokens_by_falling_ratio(p, q) == std::vector<Token>{2, 0, 1, 3});
}
