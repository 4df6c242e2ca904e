#include "reference/verify/sibling_rules/rrs.hpp"

#include <catch2/catch.hpp>

#include "reference/random/injected.hpp"
#include "tests/reference/verify/sibling_rules/rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

// 1 - prod_j (1 - beta_j), with p_j computed by the definition.
Rational rrs_acceptance(Masses p, const Masses& q, std::int32_t k) {
  Rational none(1);
  for (std::int32_t j = 0; j < k; ++j) {
    none *= 1 - overlap(p, q);
    const Masses residual = positive_difference(p, q);
    if (total_of(residual) > 0) p = normalised(residual);
  }
  return 1 - none;
}

// The recursion with siblings that repeat an earlier one left out and q as it was.
constexpr auto kSkippingDuplicates = [](const Masses& p, const Masses& q, Siblings siblings, Nodes nodes,
                                        std::uint32_t row, auto& chance) {
  std::vector<Token> tokens;
  for (const std::int32_t j : distinct_by_first_appearance(siblings))
    tokens.push_back(siblings[static_cast<std::size_t>(j)]);
  return accept_sibling_rrs(p, q, Siblings(tokens), nodes, row, chance);
};

}  // namespace

TEST_CASE("recursive rejection with replacement is exact on every kind of model") {
  check_exact(Drafting::with_replacement, 3, kRrs);
}

TEST_CASE("recursive rejection with replacement follows the target with doubles and Philox") {
  check_production(Drafting::with_replacement, kRrs);
}

TEST_CASE("recursive rejection with replacement of one sibling is the chain rule") {
  check_chain_rule(kRrs);
}

TEST_CASE("recursive rejection with replacement accepts by its formula") {
  check_acceptance(3, 3, Drafting::with_replacement, kRrs, rrs_acceptance, {{7, 10}, {19, 25}, {101, 125}});
}

TEST_CASE("the recovered token of recursive rejection with replacement is never a drafted one") {
  const Models models(4, 21, ModelKind::dense);
  EnumeratingChance<Rational> chance;
  do {
    const std::vector<Token> siblings = draft_siblings(models.draft({}), 3, Drafting::with_replacement, chance);
    const SiblingOutcome outcome = decide(models.target({}), models.draft({}), Siblings(siblings), 0, chance, kRrs);
    if (outcome.accepted == kNoSibling) REQUIRE(descend_if_drafted(outcome.token, siblings).accepted == kNoSibling);
  } while (chance.next());
}

TEST_CASE("duplicates are trials of their own") {
  // p = (1, 0) and q = (1/2, 1/2) with both siblings 1: rejected twice. With p = q the first stands.
  EnumeratingChance<Rational> chance;
  const std::vector<Token> siblings{1, 1};
  CHECK(decide(Masses{1, 0}, Masses{Rational(1, 2), Rational(1, 2)}, Siblings(siblings), 0, chance, kRrs) ==
        SiblingOutcome{kNoSibling, 0});
  CHECK(decide(golden_p(), golden_p(), Siblings(siblings), 1, chance, kRrs) == SiblingOutcome{0, 1});

  // Skipping them with q unchanged is exact for few p and q only.
  const ControlCount count = count_exact(4, 2, Drafting::with_replacement, kSkippingDuplicates);
  CHECK(count.exact < count.of / 2);
  CHECK(count.largest > Rational(1, 100));
}

TEST_CASE("recursive rejection with replacement is wrong for siblings without replacement") {
  const ControlCount count = count_exact(4, 2, Drafting::without_replacement, kRrs);
  CHECK(count.exact < count.of / 2);
  CHECK(count.largest > Rational(1, 100));
}

TEST_CASE("recursive rejection with replacement survives a residual that rounds to nothing") {
  InjectedSource source;
  source.inject(Purpose::accept, InjectedSource::kOnes);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  const std::vector<Token> siblings{0, 0, 0};
  const DenseMasses<double> p{0x1p-70, 1.0};
  const DenseMasses<double> q{0x1p-69, 1.0};
  CHECK(decide(p, q, Siblings(siblings), 0, chance, kRrs) == SiblingOutcome{kNoSibling, 1});
}

TEST_CASE("a sibling that the target forbids is rejected by every coin and one that is as likely accepted") {
  for (const RandomBlock& word : {InjectedSource::kZeros, InjectedSource::kSmallest, InjectedSource::kOnes}) {
    InjectedSource source;
    source.inject(Purpose::accept, word);
    AddressedChance<InjectedSource> chance(source, 1, 0);
    const std::vector<Token> siblings{0, 2};
    const DenseMasses<double> p{0.0, 0.25, 0.75};
    const DenseMasses<double> q{0.5, 0.25, 0.25};
    CHECK(decide(p, q, Siblings(siblings), 0, chance, kRrs) == SiblingOutcome{1, 2});
    CHECK(decide(p, p, Siblings(siblings).last(1), 1, chance, kRrs) == SiblingOutcome{0, 2});
  }
}
