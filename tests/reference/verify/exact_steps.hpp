// Steps of exactness/proof over fractions, asked for one thing at a time.
#pragma once

#include "exactness/proof/steps.hpp"

namespace draftproof {

// Does what one step emits, completed by the target, have the target's distribution?
inline bool is_exact(const ProofSteps& step, const Models& models, std::int32_t draft_len) {
  const TargetDistribution target = [&](const TokenString& prefix) -> const DenseMasses<Rational>& {
    return models.target(prefix);
  };
  return !first_difference(step_distribution(step, models, {}, draft_len).distribution, target, models.vocab_size());
}

// The distribution of the first token that a step of one draft emits.
inline DenseMasses<Rational> first_token_of(const ProofSteps& step, const Models& models) {
  DenseMasses<Rational> row(static_cast<std::size_t>(models.vocab_size()), Rational(0));
  for (const auto& [text, probability] : step_distribution(step, models, {}, 1).distribution)
    row[static_cast<std::size_t>(text[0])] += probability;
  return row;
}

}  // namespace draftproof
