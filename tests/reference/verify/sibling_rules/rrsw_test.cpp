#include "reference/verify/sibling_rules/rrsw.hpp"

#include <catch2/catch.hpp>

#include "reference/random/injected.hpp"
#include "tests/reference/verify/sibling_rules/rules.hpp"

using namespace draftproof;
using namespace draftproof::small_step;

namespace {

// Pr(accepted) from the definition, by recursion over the rejected first sibling.
Rational rrsw_acceptance(const Masses& p, const Masses& q, std::int32_t k) {
  if (k == 0) return 0;
  Rational sum(0);
  const Masses residual = positive_difference(p, q);
  for (std::size_t x = 0; x < q.size(); ++x) {
    sum += std::min(p[x], q[x]);
    if (!(q[x] > p[x])) continue;
    Masses left = q;
    left[x] = 0;
    if (total_of(left) > 0) sum += (q[x] - p[x]) * rrsw_acceptance(normalised(residual), normalised(left), k - 1);
  }
  return sum;
}

// The update without replacement after every sibling, also after those that q cannot produce any more.
constexpr auto kTryingDuplicates = [](const Masses& p, const Masses& q, Siblings siblings, Nodes nodes,
                                      std::uint32_t row, auto& chance) -> SiblingOutcome {
  Masses remaining = p;
  Masses undrafted = q;
  for (std::size_t j = 0; j < siblings.size() && total_of(undrafted) > 0; ++j) {
    const auto x = static_cast<std::size_t>(siblings[j]);
    const Masses proposed = normalised(undrafted);
    if (chance.accept(remaining[x], proposed[x], static_cast<std::uint32_t>(nodes[j])))
      return {static_cast<std::int32_t>(j), siblings[j]};
    const Masses residual = positive_difference(remaining, proposed);
    if (total_of(residual) > 0) remaining = normalised(residual);
    undrafted[x] = 0;
  }
  return {kNoSibling, chance.draw(remaining, row, Purpose::residual)};
};

// Siblings brought into the order of q: not the order in which they were drawn.
constexpr auto kSorted = [](const Masses& p, const Masses& q, Siblings siblings, Nodes nodes, std::uint32_t row,
                            auto& chance) {
  std::vector<Token> tokens(siblings.begin(), siblings.end());
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](Token a, Token b) { return q[static_cast<std::size_t>(a)] > q[static_cast<std::size_t>(b)]; });
  return accept_sibling_rrsw(p, q, Siblings(tokens), nodes, row, chance);
};

}  // namespace

TEST_CASE("recursive rejection without replacement is exact on every kind of model") {
  check_exact(Drafting::without_replacement, 3, kRrsw);
}

TEST_CASE("recursive rejection without replacement follows the target with doubles and Philox") {
  check_production(Drafting::without_replacement, kRrsw);
}

TEST_CASE("recursive rejection without replacement of one sibling is the chain rule") {
  check_chain_rule(kRrsw);
}

TEST_CASE("recursive rejection without replacement accepts by its formula") {
  check_acceptance(3, 3, Drafting::without_replacement, kRrsw, rrsw_acceptance, {{7, 10}, {41, 50}, {1, 1}});
}

TEST_CASE("siblings that cover the vocabulary are accepted for certain") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Models models(4, seed, ModelKind::dense);
    CHECK(node_distribution(models.target({}), models.draft({}), 4, Drafting::without_replacement, kRrsw).acceptance ==
          1);
  }
}

TEST_CASE("independent siblings are verified by their first appearances") {
  check_exact(Drafting::with_replacement, 3, kRrsw);
  // Not ordered against trials of their own: here duplicates are worth more as trials.
  const Masses p{Rational(1, 11), Rational(5, 11), Rational(5, 11)};
  const Masses q{Rational(3, 5), Rational(3, 10), Rational(1, 10)};
  CHECK(node_distribution(p, q, 2, Drafting::with_replacement, kRrs).acceptance == Rational(191, 275));
  CHECK(node_distribution(p, q, 2, Drafting::with_replacement, kRrsw).acceptance == Rational(166, 275));
  CHECK(node_distribution(golden_p(), golden_q(), 2, Drafting::with_replacement, kRrsw).acceptance > Rational(0));
}

TEST_CASE("passing over duplicates equals leaving them out") {
  const Models models(3, 31, ModelKind::dense);
  EnumeratingChance<Rational> chance;
  std::map<std::vector<Token>, Rational> as_given, left_out;
  const auto run = [&](auto& distribution, bool leave_out) {
    do {
      const std::vector<Token> siblings = draft_siblings(models.draft({}), 3, Drafting::with_replacement, chance);
      std::vector<Token> tokens;
      std::vector<std::int32_t> nodes;
      for (const std::int32_t j : distinct_by_first_appearance(siblings)) {
        tokens.push_back(siblings[static_cast<std::size_t>(j)]);
        nodes.push_back(j);
      }
      SiblingOutcome outcome =
          leave_out
              ? accept_sibling_rrsw(models.target({}), models.draft({}), Siblings(tokens), Nodes(nodes), 0, chance)
              : decide(models.target({}), models.draft({}), Siblings(siblings), 0, chance, kRrsw);
      if (leave_out && outcome.accepted != kNoSibling)
        outcome.accepted = nodes[static_cast<std::size_t>(outcome.accepted)];
      std::vector<Token> key = siblings;
      key.push_back(outcome.accepted);
      key.push_back(outcome.token);
      distribution[key] += chance.probability();
    } while (chance.next());
  };
  run(as_given, false);
  run(left_out, true);
  CHECK(as_given == left_out);
}

TEST_CASE("an exhausted support leaves nothing to try") {
  // q holds one token: the second sibling is a lie and is passed over, whatever the coins say.
  InjectedSource source;
  source.inject(Purpose::accept, InjectedSource::kZeros);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  const std::vector<Token> siblings{0, 1};
  const DenseMasses<double> p{0.0, 0.25, 0.75};
  const SiblingOutcome outcome = decide(p, DenseMasses<double>{1.0, 0.0, 0.0}, Siblings(siblings), 0, chance, kRrsw);
  CHECK(outcome.accepted == kNoSibling);
  CHECK(outcome.token > 0);
  // Drafting itself stops there, and the distribution is the target's.
  const Masses one{1, 0, 0};
  CHECK(node_distribution(golden_p(), one, 3, Drafting::without_replacement, kRrsw).tokens == golden_p());
  CHECK(node_distribution(golden_p(), one, 3, Drafting::without_replacement, kRrsw).acceptance == golden_p()[0]);
}

TEST_CASE("what is left of q may be too small for fixed point") {
  // After token 0 the rest of q is below 2^-62 and counts as exhausted.
  InjectedSource source;
  source.inject(Purpose::accept, InjectedSource::kOnes);
  AddressedChance<InjectedSource> chance(source, 1, 0);
  const std::vector<Token> siblings{0, 1, 2};
  const DenseMasses<double> p{0.5, 0.25, 0.25};
  const SiblingOutcome outcome =
      decide(p, DenseMasses<double>{1.0, 0x1p-70, 0x1p-70}, Siblings(siblings), 0, chance, kRrsw);
  CHECK(outcome.accepted == kNoSibling);
  CHECK(outcome.token > 0);
}

TEST_CASE("faulty recursive rejection without replacement is caught") {
  const ControlCount duplicates = count_exact(4, 2, Drafting::with_replacement, kTryingDuplicates);
  CHECK(duplicates.exact < duplicates.of / 2);
  CHECK(duplicates.largest > Rational(1, 100));
  const ControlCount sorted = count_exact(4, 2, Drafting::without_replacement, kSorted);
  CHECK(sorted.exact < sorted.of / 2);
  CHECK(sorted.largest > Rational(1, 100));
  // The same replica is right where there are no duplicates.
  const ControlCount honest = count_exact(4, 2, Drafting::without_replacement, kTryingDuplicates);
  CHECK(honest.exact == honest.of);
}
