#include "reference/verify/lossy/synthetic_acceptance.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "reference/verify/chance.hpp"
#include "tests/reference/verify/lossy/lossy_distribution.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/statistical.hpp"

using namespace draftproof;

namespace {

OutputDistribution distribution_of(const ModelPair<Rational>& models, std::int32_t draft_len, const Rational& rate) {
  return enumerated_distribution([&](LossyChance& chance) {
    const DraftedChain chain = draw_chain_and_rows(models, draft_len, chance);
    const std::span<const Token> draft = chain.tree.tokens;
    const ChainOutcome outcome = verify_synthetic_acceptance(draft, chain.target, rate, chance);
    return emitted(draft, outcome.num_accepted, outcome.last_token);
  });
}

}  // namespace

TEST_CASE("synthetic acceptance is as far from the target as it says") {
  for (const ModelKind kind : kModelKinds)
    for (const Rational& rate : {Rational(0), Rational(1, 3), Rational(4, 5), Rational(1)}) {
      const ModelPair<Rational> models(3, 6, kind);
      const LossyRow& p = models.target({});
      const LossyRow distribution = first_token_distribution(distribution_of(models, 1, rate), 3);
      INFO(name_of(kind) << ", rate " << rate);
      CHECK(total_variation_of(p, distribution) == synthetic_acceptance_distance(p, models.draft({}), rate));
      if (kind == ModelKind::disjoint) CHECK(total_variation_of(p, distribution) == rate);
      if (kind == ModelKind::equal) CHECK(distribution == p);
      if (kind == ModelKind::dense && rate > 0) CHECK(total_variation_of(p, distribution) > 0);
    }
}

TEST_CASE("over two drafts synthetic acceptance emits the distribution that its coins and draws define") {
  const ModelPair<Rational> models(3, 8, ModelKind::zeros);
  const Rational a(2, 3);
  OutputDistribution expected;
  const auto add = [&](const TokenString& text, const Rational& probability) {
    if (probability > 0) expected[text] += probability;
  };
  for (Token x = 0; x < 3; ++x) {
    const Rational& p1 = models.target({})[static_cast<std::size_t>(x)];
    const Rational& q1 = models.draft({})[static_cast<std::size_t>(x)];
    add({x}, (1 - a) * p1);
    const TokenString one{x};
    for (Token y = 0; y < 3; ++y) {
      add({x, y}, a * q1 * (1 - a) * models.target(one)[static_cast<std::size_t>(y)]);
      const TokenString two{x, y};
      for (Token z = 0; z < 3; ++z)
        add({x, y, z}, a * q1 * a * models.draft(one)[static_cast<std::size_t>(y)] *
                           models.target(two)[static_cast<std::size_t>(z)]);
    }
  }
  const OutputDistribution distribution = distribution_of(models, 2, a);
  CHECK(distribution == expected);
  const TargetDistribution target = [&](const TokenString& text) -> const LossyRow& { return models.target(text); };
  CHECK(first_difference(distribution, target, 3).has_value());
  CHECK(total_variation(distribution, target, 3) >
        synthetic_acceptance_distance(models.target({}), models.draft({}), a));
}

TEST_CASE("synthetic acceptance accepts at its rate in floats and uses no address twice") {
  // Steps of four drafts.
  const DenseRows<double> target{std::vector<DenseMasses<double>>(5, {0.5, 0.5})};
  const std::vector<Token> draft{0, 1, 0, 1};
  const auto counts = count_in_floats(3, 5, [&](auto& chance) {
    return verify_synthetic_acceptance(std::span<const Token>(draft), target, 0.7, chance).num_accepted;
  });
  const std::vector<double> expected{0.3, 0.21, 0.147, 0.1029, 0.2401};
  CHECK(follows(counts, expected));
}

TEST_CASE("a synthetic rate outside the unit interval is an error") {
  const DenseRows<double> target{{{0.5, 0.5}}};
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, 0, 0);
  for (const double rate : {-0.1, 1.1, std::nan("")})
    CHECK(error_of(ErrorKind::usage, [&] {
            verify_synthetic_acceptance(std::span<const Token>(), target, rate, chance);
          }).find("rate must be a number in [0, 1]") != std::string::npos);
}
