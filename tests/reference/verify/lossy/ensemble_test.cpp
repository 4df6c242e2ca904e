#include "reference/verify/lossy/ensemble.hpp"

#include "reference/verify/chance.hpp"
#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

ProofSteps ensemble_step(const Rational& weight) {
  return exact_only(proof_steps::chain_step(
      [weight](std::span<const Token> draft, const auto& target, const auto& proposal, auto& chance) {
        return verify_ensemble(draft, target, proposal, weight, chance);
      }));
}

}  // namespace

TEST_CASE("a static ensemble emits the mixture, as far from the target and as readily as it says") {
  for (const ModelKind kind : kModelKinds)
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      for (const Rational& weight : {Rational(0), Rational(1, 3), Rational(7, 10), Rational(1)}) {
        const Models models(3, seed, kind);
        const DenseMasses<Rational>& p = models.target({});
        const DenseMasses<Rational>& q = models.draft({});
        DenseMasses<Rational> mixture;
        for (std::size_t x = 0; x < 3; ++x) mixture.push_back(weight * p[x] + (1 - weight) * q[x]);
        INFO(name_of(kind) << " seed " << seed << " weight " << weight);
        CHECK(first_token_of(ensemble_step(weight), models) == mixture);
        CHECK(total_variation_of(p, mixture) == ensemble_distance(p, q, weight));
        CHECK(step_distribution(ensemble_step(weight), models, {}, 1).mean_accepted ==
              1 - weight * total_variation_of(p, q));
        if (weight == 1) CHECK(is_exact(ensemble_step(weight), models, 2));
      }
}

TEST_CASE("a weight outside its range is refused") {
  DenseRows<double> rows{{{1.0}}};
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, 0, 0);
  CHECK_THAT(error_of(ErrorKind::usage, [&] { verify_ensemble({}, rows, rows, 1.5, chance); }),
             Contains("number in [0, 1]"));
}
