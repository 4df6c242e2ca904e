#include "reference/verify/sibling_rules/naive_sampling.hpp"

#include <catch2/catch.hpp>

#include "tests/reference/verify/sibling_rules/rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

// sum_x p(x) (1 - (1 - q(x))^k)
Rational naive_sampling_acceptance(const Masses& p, const Masses& q, std::int32_t k) {
  Rational sum(0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    Rational missed(1);
    for (std::int32_t j = 0; j < k; ++j) missed *= 1 - q[x];
    sum += p[x] * (1 - missed);
  }
  return sum;
}

}  // namespace

TEST_CASE("naive sampling is exact for siblings of any distribution") {
  for (const Drafting drafting : {Drafting::with_replacement, Drafting::without_replacement, Drafting::greedy})
    check_exact(drafting, 3, kNaive);
}

TEST_CASE("naive sampling follows the target with doubles and Philox") {
  check_production(Drafting::with_replacement, kNaive);
}

TEST_CASE("naive sampling accepts by its formula") {
  // The golden k = 1: .5 .2 + .3 .3 + .2 .5.
  check_acceptance(3, 3, Drafting::with_replacement, kNaive, naive_sampling_acceptance,
                   {{29, 100}, {483, 1000}, {6161, 10000}});
}

TEST_CASE("naive sampling of one fixed sibling is the chain rule with a one-hot proposal") {
  for (Token token = 0; token < 3; ++token) {
    Masses one(3, 0);
    one[static_cast<std::size_t>(token)] = 1;
    const NodeDistribution naive = node_distribution(golden_p(), one, 1, Drafting::with_replacement, kNaive);
    const NodeDistribution chain = node_distribution(golden_p(), one, 1, Drafting::with_replacement, kRrs);
    CHECK(naive.tokens == chain.tokens);
    CHECK(naive.acceptance == chain.acceptance);
  }
}

TEST_CASE("naive sampling descends into the first of duplicate siblings") {
  EnumeratingChance<Rational> chance;
  const std::vector<Token> siblings{2, 1, 1};
  CHECK(decide(Masses{0, 1, 0}, golden_q(), Siblings(siblings), 0, chance, kNaive) == SiblingOutcome{1, 1});
}

TEST_CASE("a target sample of its own for every sibling is biased") {
  // fms-extras #12: each candidate row draws its own token and is accepted where it agrees.
  const auto own_samples = [](const Masses& p, const Masses&, Siblings siblings, Nodes, std::uint32_t row,
                              auto& chance) -> SiblingOutcome {
    for (std::uint32_t j = 0; j < siblings.size(); ++j)
      if (chance.draw_at({1 + j, row, 0, Purpose::target_sample}, p) == siblings[j])
        return {static_cast<std::int32_t>(j), siblings[j]};
    return {kNoSibling, chance.draw(p, row, Purpose::target_sample)};
  };
  const ControlCount count = count_exact(4, 2, Drafting::with_replacement, own_samples);
  CHECK(count.exact < count.of / 2);
  CHECK(count.largest > Rational(1, 100));
}
