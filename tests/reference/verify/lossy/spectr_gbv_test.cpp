#include "reference/verify/lossy/spectr_gbv.hpp"

#include "tests/reference/verify/exact_steps.hpp"
#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<Rational>;

ProofSteps of_paths(std::int32_t count) {
  return exact_only(proof_steps::tree_step(proof_steps::merged_paths(count), proof_steps::spectr_gbv(count)));
}

// Sum over strings of up to `depth` tokens of min(p, q) of the whole string: no verifier of one path accepts more.
Rational joint_minimum(const Models& models, const TokenString& path, std::int32_t depth, const Rational& p_path,
                       const Rational& q_path) {
  if (depth == 0) return 0;
  Rational sum(0);
  for (Token x = 0; x < models.vocab_size(); ++x) {
    const Rational p = p_path * models.target(path)[static_cast<std::size_t>(x)];
    const Rational q = q_path * models.draft(path)[static_cast<std::size_t>(x)];
    TokenString next = path;
    next.push_back(x);
    sum += std::min(p, q) + joint_minimum(models, next, depth - 1, p, q);
  }
  return sum;
}

}  // namespace

TEST_CASE("SpecTr-GBV's code emits by two drafts of one position what a count by hand says") {
  const Rational third(1, 3);
  const Models models({2 * third, third}, {third, 2 * third});
  // h is 9/10 of token 0 and 3/8 of token 1; paths 00, 01, 10, 11 have 1/9, 2/9, 2/9, 4/9; what is left, 19/60, is 0.
  const Row emitted = first_token_of(of_paths(2), models);
  CHECK(emitted[0] == Rational(17, 40) + Rational(19, 60));
  CHECK(emitted[0] - 2 * third == Rational(3, 40));
  CHECK(step_distribution(of_paths(2), models, {}, 1).mean_accepted == Rational(41, 60));
  // Two drafts fail together with 1/6 although nothing is left to recover: half of (1 - 2/3), and half of (1 - 2/3)^2.
  const Models equal({Rational(1, 2), Rational(1, 2)}, {Rational(1, 2), Rational(1, 2)});
  CHECK(step_distribution(of_paths(2), equal, {}, 1).mean_accepted == 1 - Rational(1, 6) - Rational(1, 18));
  CHECK(first_token_of(of_paths(2), equal)[0] == Rational(1, 2));
}

TEST_CASE("SpecTr-GBV's code of one path is exact for one draft, and accepts the joint minimum of two, which is not") {
  int off = 0;
  for (const ModelKind kind : kModelKinds)
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Models models(3, seed, kind);
      INFO(name_of(kind) << " seed " << seed);
      CHECK(is_exact(of_paths(1), models, 1));
      const StepDistribution two = step_distribution(of_paths(1), models, {}, 2);
      CHECK(two.mean_accepted == joint_minimum(models, {}, 2, 1, 1));
      const Rational exact =
          step_distribution(exact_only(proof_steps::chain_step(proof_steps::block)), models, {}, 2).mean_accepted;
      CHECK(two.mean_accepted >= exact);
      // More than the most that an exact rule accepts is not the target's text.
      if (two.mean_accepted > exact) CHECK_FALSE(is_exact(of_paths(1), models, 2));
      off += two.mean_accepted > exact;
    }
  CHECK(off > 5);
}
