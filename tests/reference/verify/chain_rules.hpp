// What is asked of every verifier of chains. Those here are callables (draft, target, proposal, chance) ->
// ChainOutcome.
#pragma once

#include <catch2/catch.hpp>

#include "tests/reference/verify/measured_distribution.hpp"
#include "tests/reference/verify/small_step.hpp"
#include "tests/support/statistical.hpp"

namespace draftproof::small_step {

using Models = ModelPair<Rational>;
using Draft = std::span<const Token>;

inline constexpr auto kTokenwise = [](Draft draft, auto& target, auto& proposal, auto& chance) {
  return verify_chain(draft, target, proposal, chance);
};

template <class Verify>
OutputDistribution step_distribution(const Models& models, const TokenString& prefix, std::uint32_t draft_len,
                                     const Verify& verify) {
  return enumerate([&](auto& chance) { return chain_step(models, prefix, draft_len, chance, verify); }).distribution;
}

// Two steps of two drafts enumerated together follow the target and share no random word.
template <class Verify>
void check_two_steps(const Models& models, const Verify& verify) {
  const EnumeratedDistribution distribution = enumerate_two_steps(
      [&](const TokenString& prefix, auto& chance) { return chain_step(models, prefix, 2, chance, verify); });
  CHECK(distribution.reused == 0);
  CHECK_FALSE(first_difference(distribution.distribution, target_of(models), models.vocab_size()).has_value());
}

// Doubles and Philox, three steps of three drafts, under the key audit.
template <class Verify>
void check_production(std::uint64_t seed, const Verify& verify) {
  for (const ModelKind kind : {ModelKind::dense, ModelKind::zeros}) {
    const ModelPair<double> models(3, seed, kind);
    const ChiSquaredTest test = measure(models, {}, [&](const TokenString& prefix, AuditedChance& chance) {
      return chain_step(models, prefix, 3, chance, verify);
    });
    CAPTURE(name_of(kind));
    CHECK(test.df >= (kind == ModelKind::dense ? 100 : 10));
    CHECK(passes(test, 2));
  }
}

}  // namespace draftproof::small_step
