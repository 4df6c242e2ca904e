#include "reference/verify/lossy/synthetic_acceptance.hpp"

#include "reference/verify/chance.hpp"
#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

ProofSteps synthetic_step(const Rational& rate) {
  return exact_only(
      proof_steps::chain_step([rate](std::span<const Token> draft, const auto& target, const auto&, auto& chance) {
        return verify_synthetic_acceptance(draft, target, rate, chance);
      }));
}

}  // namespace

TEST_CASE("synthetic acceptance is as far from the target as it says") {
  for (const ModelKind kind : kModelKinds)
    for (const Rational& rate : {Rational(0), Rational(1, 3), Rational(4, 5), Rational(1)}) {
      const Models models(3, 6, kind);
      const DenseMasses<Rational>& p = models.target({});
      const DenseMasses<Rational> distribution = first_token_of(synthetic_step(rate), models);
      INFO(name_of(kind) << ", rate " << rate);
      CHECK(total_variation_of(p, distribution) == synthetic_acceptance_distance(p, models.draft({}), rate));
      if (kind == ModelKind::disjoint) CHECK(total_variation_of(p, distribution) == rate);
      if (kind == ModelKind::equal) CHECK(distribution == p);
      if (kind == ModelKind::dense && rate > 0) CHECK(total_variation_of(p, distribution) > 0);
    }
}

TEST_CASE("over several drafts synthetic acceptance has its rate at each, and the row after the last accepted one") {
  const Models equal(3, 8, ModelKind::equal);
  CHECK(is_exact(synthetic_step(Rational(2, 3)), equal, 3));
  for (const ModelKind kind : kModelKinds)
    CHECK(step_distribution(synthetic_step(Rational(2, 3)), Models(3, 8, kind), {}, 3).mean_accepted ==
          Rational(2, 3) + Rational(4, 9) + Rational(8, 27));
}

TEST_CASE("a synthetic rate outside the unit interval is an error") {
  const DenseRows<double> target{{{0.5, 0.5}}};
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, 0, 0);
  for (const double rate : {-0.1, 1.1, std::nan("")})
    CHECK_THAT(error_of(ErrorKind::usage,
                        [&] { verify_synthetic_acceptance(std::span<const Token>(), target, rate, chance); }),
               Contains("rate must be a number in [0, 1]"));
}
