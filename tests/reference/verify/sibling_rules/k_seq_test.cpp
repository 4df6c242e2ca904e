#include "reference/verify/sibling_rules/k_seq.hpp"

#include <catch2/catch.hpp>

#include "tests/reference/verify/sibling_rules/rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

auto with_rho(Rational rho) {
  return [rho](const Masses& p, const Masses& q, Siblings siblings, Nodes nodes, std::uint32_t row, auto& chance) {
    return accept_sibling_k_seq(p, q, siblings, nodes, row, chance, rho);
  };
}

// rho = k, always valid.
constexpr auto kLargestRho = [](const Masses& p, const Masses& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                                auto& chance) {
  const Rational rho(static_cast<int>(std::max<std::size_t>(1, siblings.size())));
  return accept_sibling_k_seq(p, q, siblings, nodes, row, chance, rho);
};

// rho* rounded up to within 1/16: proofs with it are as good, and their fractions are short.
constexpr auto kCoarseRho = [](const Masses& p, const Masses& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                               auto& chance) {
  const Rational rho = k_seq_rho(p, q, siblings.size(), Rational(1, 16));
  return accept_sibling_k_seq(p, q, siblings, nodes, row, chance, rho);
};

// The rule with residual hits not counted, to see p_acc alone.
template <class Chance>
struct WatchedChance {
  Chance& chance;
  bool drew = false;
  bool accept(const Rational& p, const Rational& q, std::uint32_t row) { return chance.accept(p, q, row); }
  Token draw(const Masses& masses, std::uint32_t row, Purpose purpose) {
    drew = true;
    return chance.draw(masses, row, purpose);
  }
};

template <class Rule>
auto without_hits(const Rule& rule) {
  return [rule](const Masses& p, const Masses& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                auto& chance) -> SiblingOutcome {
    WatchedChance<std::remove_reference_t<decltype(chance)>> watched{chance};
    const SiblingOutcome outcome = rule(p, q, siblings, nodes, row, watched);
    return {watched.drew ? kNoSibling : outcome.accepted, outcome.token};
  };
}

Rational power(Rational base, std::int32_t exponent) {
  Rational out(1);
  for (; exponent > 0; --exponent) out *= base;
  return out;
}

// 1 - (1 - beta)^k, beta = sum min(p / rho, q).
Rational k_seq_acceptance(const Masses& p, const Masses& q, std::int32_t k, const Rational& rho) {
  Rational beta(0);
  for (std::size_t x = 0; x < p.size(); ++x) beta += std::min(Rational(p[x] / rho), q[x]);
  return 1 - power(1 - beta, k);
}

}  // namespace

TEST_CASE("k-sequential selection is exact with the best rho on every kind of model") {
  check_exact(Drafting::with_replacement, 3, kCoarseRho);
}

TEST_CASE("k-sequential selection is exact with the largest rho on every kind of model") {
  check_exact(Drafting::with_replacement, 3, kLargestRho);
}

TEST_CASE("k-sequential selection follows the target with doubles and Philox") {
  check_production(Drafting::with_replacement, kKSeq);
}

TEST_CASE("k-sequential selection of one sibling is the chain rule") {
  check_chain_rule(kKSeq);
}

TEST_CASE("k-sequential selection accepts by its formula") {
  for (const ModelKind kind : kModelKinds) {
    const Models models(3, 7, kind);
    for (std::int32_t k = 1; k <= 3; ++k) {
      CAPTURE(name_of(kind), k);
      const Masses& p = models.target({});
      const Masses& q = models.draft({});
      const Rational rho = k_seq_rho(p, q, static_cast<std::size_t>(k));
      CHECK(node_distribution(p, q, k, Drafting::with_replacement, without_hits(with_rho(rho))).acceptance ==
            k_seq_acceptance(p, q, k, rho));
      CHECK(node_distribution(p, q, k, Drafting::with_replacement, with_rho(rho)).acceptance >=
            k_seq_acceptance(p, q, k, rho));
    }
  }
}

TEST_CASE("k-sequential selection gives the golden acceptances") {
  const auto distribution = [](std::int32_t k, const auto& rule) {
    return node_distribution(golden_p(), golden_q(), k, Drafting::with_replacement, rule).acceptance;
  };
  CHECK(distribution(1, kLargestRho) == Rational(7, 10));
  CHECK(distribution(2, without_hits(kLargestRho)) == Rational(279, 400));
  CHECK(distribution(2, kLargestRho) == Rational(18657, 24200));
  CHECK(distribution(3, without_hits(kLargestRho)) == Rational(19, 27));
  CHECK(distribution(3, kLargestRho) == Rational(226787, 270000));
}

TEST_CASE("rho is the smallest valid one rounded up") {
  // By bisection in decimals of 40 digits.
  const double golden_rho[] = {1.456776436283002, 1.792593028268749};
  const double golden_acceptance[] = {0.791355287256600, 0.858518605653750};
  const DenseMasses<double> p{0.5, 0.3, 0.2};
  const DenseMasses<double> q{0.2, 0.3, 0.5};
  for (std::size_t k = 2; k <= 3; ++k) {
    const Rational width = Rational(1) / (std::int64_t{1} << 40);
    const Rational rho = k_seq_rho(golden_p(), golden_q(), k, width);
    CHECK(static_cast<double>(rho) == Approx(golden_rho[k - 2]).epsilon(0).margin(2e-12));
    CHECK(k_seq_rho(p, q, k, 0x1p-40) == Approx(golden_rho[k - 2]).epsilon(0).margin(2e-12));
    CHECK(static_cast<double>(k_seq_acceptance(golden_p(), golden_q(), static_cast<std::int32_t>(k), rho)) ==
          Approx(golden_acceptance[k - 2]).epsilon(0).margin(2e-12));
    // p_acc <= rho beta holds at rho and fails one width below.
    const auto valid = [&](const Rational& r) {
      Rational beta(0);
      for (std::size_t x = 0; x < 3; ++x) beta += std::min(Rational(golden_p()[x] / r), golden_q()[x]);
      return k_seq_acceptance(golden_p(), golden_q(), static_cast<std::int32_t>(k), r) <= r * beta;
    };
    CHECK(valid(rho));
    CHECK_FALSE(valid(rho - width));
  }
  CHECK(k_seq_rho(golden_p(), golden_p(), 3) == 1);      // p = q
  CHECK(k_seq_rho(golden_p(), golden_q(), 1) == 1);      // one sibling
  CHECK(k_seq_rho(Masses{1, 0}, Masses{0, 1}, 3) == 3);  // disjoint: nothing is accepted anyway
  CHECK(k_seq_rho(Masses{1, 0}, Masses{1, 0}, 3) == 1);  // one-hot and equal
}

TEST_CASE("a rho just below the best is biased") {
  for (std::int32_t k = 2; k <= 3; ++k) {
    const Rational rho = k_seq_rho(golden_p(), golden_q(), static_cast<std::size_t>(k));
    const auto bias = [&](const Rational& r) {
      return distance(node_distribution(golden_p(), golden_q(), k, Drafting::with_replacement, with_rho(r)).tokens,
                      golden_p());
    };
    CHECK(bias(rho) == 0);
    const Rational slightly = bias(rho - Rational(1, 1000));
    CHECK(slightly > 0);
    CHECK(slightly < Rational(1, 1000));  // silent: no test by sampling would see it
    CHECK(bias(1) > slightly);
  }
}

TEST_CASE("disjoint distributions draw from the target and hit no sibling") {
  const NodeDistribution distribution =
      node_distribution(Masses{Rational(1, 2), Rational(1, 2), 0, 0}, Masses{0, 0, Rational(1, 3), Rational(2, 3)}, 2,
                        Drafting::with_replacement, kKSeq);
  CHECK(distribution.tokens == Masses{Rational(1, 2), Rational(1, 2), 0, 0});
  CHECK(distribution.acceptance == 0);
}

TEST_CASE("k-sequential selection is wrong for siblings without replacement") {
  const ControlCount count = count_exact(4, 2, Drafting::without_replacement, kKSeq);
  CHECK(count.exact < count.of / 2);
  CHECK(count.largest > Rational(1, 100));
}
