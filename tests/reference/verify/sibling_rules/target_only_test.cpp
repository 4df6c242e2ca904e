#include "reference/verify/sibling_rules/target_only.hpp"

#include <catch2/catch.hpp>

#include "reference/random/injected.hpp"
#include "tests/reference/verify/sibling_rules/rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

// The distribution of one node with given siblings.
template <class Rule>
Masses distribution_given(const Masses& p, const std::vector<Token>& siblings, const Rule& rule,
                          Rational* acceptance = nullptr) {
  Masses distribution(p.size());
  EnumeratingChance<Rational> chance;
  do {
    const SiblingOutcome outcome = decide(p, p, Siblings(siblings), 0, chance, rule);
    distribution[static_cast<std::size_t>(outcome.token)] += chance.probability();
    if (acceptance != nullptr && outcome.accepted != kNoSibling) *acceptance += chance.probability();
  } while (chance.next());
  return distribution;
}

// SGLang's rule with its thresholds: sibling i stands where u < C_i / threshold_acc or p(c_i) >= threshold_single. As
// one draw: min(1, C_i / threshold_acc) is the cumulative distribution of the first sibling that the coin reaches.
auto with_thresholds(Rational threshold_acc, Rational threshold_single) {
  return
      [=](const Masses& p, const Masses&, Siblings siblings, Nodes, std::uint32_t row, auto& chance) -> SiblingOutcome {
        Masses undrafted = p;
        Masses shares(siblings.size() + 1);
        Rational cumulative(0);
        Rational reached(0);
        for (std::size_t j = 0; j < siblings.size(); ++j) {
          const Rational mass = p[static_cast<std::size_t>(siblings[j])];
          cumulative += mass;  // duplicates count twice
          const Rational up_to =
              mass >= threshold_single ? Rational(1) : std::min(Rational(1), Rational(cumulative / threshold_acc));
          shares[j] = up_to > reached ? Rational(up_to - reached) : Rational(0);
          reached = std::max(reached, up_to);
          undrafted[static_cast<std::size_t>(siblings[j])] = 0;
        }
        shares.back() = 1 - reached;
        const auto chosen = static_cast<std::size_t>(chance.draw(shares, row, Purpose::sibling_coin));
        if (chosen < siblings.size()) return {static_cast<std::int32_t>(chosen), siblings[chosen]};
        return {kNoSibling, chance.draw(total_of(undrafted) > 0 ? undrafted : p, row, Purpose::residual)};
      };
}

// EAGLE: one coin per sibling, q = 1, zero and renormalise after a rejection.
constexpr auto kEagle = [](const Masses& p, const Masses&, Siblings siblings, Nodes nodes, std::uint32_t row,
                           auto& chance) -> SiblingOutcome {
  Masses remaining = p;
  for (std::size_t j = 0; j < siblings.size(); ++j) {
    const auto x = static_cast<std::size_t>(siblings[j]);
    if (chance.accept(remaining[x], 1, static_cast<std::uint32_t>(nodes[j])))
      return {static_cast<std::int32_t>(j), siblings[j]};
    remaining[x] = 0;
    remaining = normalised(remaining);
  }
  return {kNoSibling, chance.draw(remaining, row, Purpose::residual)};
};

}  // namespace

TEST_CASE("target-only sampling is exact for siblings of any distribution duplicates included") {
  for (const Drafting drafting : {Drafting::with_replacement, Drafting::without_replacement, Drafting::greedy})
    check_exact(drafting, 3, kTargetOnly);
}

TEST_CASE("target-only sampling follows the target with doubles and Philox") {
  check_production(Drafting::with_replacement, kTargetOnly);
}

TEST_CASE("target-only sampling accepts with the probability of the sibling set") {
  const Rational golden[] = {{1, 5}, {1, 2}, {1, 1}};
  const std::vector<Token> by_q{2, 1, 0};
  for (std::size_t k = 1; k <= 3; ++k) {
    Rational acceptance(0);
    const std::vector<Token> siblings(by_q.begin(), by_q.begin() + static_cast<std::ptrdiff_t>(k));
    CHECK(distribution_given(golden_p(), siblings, kTargetOnly, &acceptance) == golden_p());
    CHECK(acceptance == golden[k - 1]);
  }
  Rational acceptance(0);
  distribution_given(golden_p(), {1, 1, 1}, kTargetOnly, &acceptance);
  CHECK(acceptance == golden_p()[1]);
}

TEST_CASE("target-only sampling has the distribution of zeroing and renormalising after each rejection") {
  for (const ModelKind kind : {ModelKind::dense, ModelKind::ties}) {
    const Models models(4, 6, kind);
    for (const std::vector<Token>& siblings : {std::vector<Token>{3}, {1, 2}, {2, 0, 3}}) {
      std::map<std::pair<std::int32_t, Token>, Rational> ours, eagle;
      const auto run = [&](auto& distribution, const auto& rule) {
        EnumeratingChance<Rational> chance;
        do {
          const SiblingOutcome outcome =
              decide(models.target({}), models.draft({}), Siblings(siblings), 0, chance, rule);
          distribution[{outcome.accepted, outcome.token}] += chance.probability();
        } while (chance.next());
      };
      run(ours, kTargetOnly);
      run(eagle, kEagle);
      CHECK(ours == eagle);
    }
  }
}

TEST_CASE("a coin of zero never accepts a sibling of target probability zero") {
  // sglang #35771.
  InjectedSource source;
  source.inject(Purpose::sibling_coin, InjectedSource::kZeros);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  const std::vector<Token> siblings{0, 1};
  CHECK(decide(DenseMasses<double>{0.0, 0.5, 0.5}, DenseMasses<double>{1.0, 0.0, 0.0}, Siblings(siblings), 0, chance,
               kTargetOnly) == SiblingOutcome{1, 1});
}

TEST_CASE("a coin of one falls to the other tokens and where there are none to the last sibling") {
  InjectedSource source;
  source.inject(Purpose::sibling_coin, InjectedSource::kOnes);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  const std::vector<Token> siblings{0, 1};
  CHECK(decide(DenseMasses<double>{0.25, 0.5, 0.25}, {}, Siblings(siblings), 0, chance, kTargetOnly) ==
        SiblingOutcome{kNoSibling, 2});
  CHECK(decide(DenseMasses<double>{0.5, 0.5, 0.0}, {}, Siblings(siblings), 1, chance, kTargetOnly) ==
        SiblingOutcome{1, 1});
}

TEST_CASE("thresholds below one bias target-only sampling by the known amounts") {
  const Masses& p = golden_p();
  CHECK(distribution_given(p, {0, 1}, with_thresholds(1, 1)) == p);
  const Masses half = distribution_given(p, {0, 1}, with_thresholds(Rational(1, 2), 1));
  CHECK(half == Masses{1, 0, 0});
  CHECK(distance(half, p) == Rational(1, 2));
  const Masses nine_tenths = distribution_given(p, {0, 1}, with_thresholds(Rational(9, 10), Rational(9, 10)));
  CHECK(nine_tenths == Masses{Rational(5, 9), Rational(1, 3), Rational(1, 9)});
  CHECK(distance(nine_tenths, p) == Rational(4, 45));
  CHECK(distribution_given(p, {0, 1}, with_thresholds(1, Rational(3, 10))) == Masses{1, 0, 0});
}

TEST_CASE("counting duplicate siblings twice biases target-only sampling") {
  const ControlCount count = count_exact(4, 3, Drafting::with_replacement, with_thresholds(1, 2));
  CHECK(count.exact < count.of / 2);
  CHECK(count.largest > Rational(1, 100));
}
