// Parts of the oracles of acceptance_oracles.hpp: masses, whole strings and sums along paths. Nothing here comes from a
// verifier or from a drafter.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "exactness/proof/acceptance_oracles.hpp"

namespace draftproof {

using ExactMasses = DenseMasses<Rational>;

// A model's distribution after a path.
using DistributionAfter = std::function<ExactMasses(const TokenString& path)>;
DistributionAfter target_of(const Models& models);
DistributionAfter draft_of(const Models& models);

TokenString followed_by(TokenString prefix, std::size_t token);
std::size_t argmax(const ExactMasses& masses);

Rational power(const Rational& base, std::int32_t exponent);
// min(1, p / q), q > 0.
Rational ratio(const Rational& p, const Rational& q);
// Divided by their sum; nothing stays nothing.
ExactMasses normalised_or_empty(ExactMasses masses);
// norm(max(p - q, 0)), or nothing where that is empty.
ExactMasses normalised_residual(const ExactMasses& p, const ExactMasses& q);
// norm(q without `token`), or nothing where q holds that token alone.
ExactMasses without(ExactMasses q, std::size_t token);

// E(prefix) = sum over x of weight_x(p, q) (1 + E(prefix x)), down to `depth` levels.
using Weights = std::function<ExactMasses(const ExactMasses& p, const ExactMasses& q)>;
Rational product_sum(const Models& models, const TokenString& prefix, std::int32_t depth, const Weights& weights);

// Weights that are known token by token.
using WeightOfToken = std::function<Rational(const ExactMasses& p, const ExactMasses& q, std::size_t x)>;
Weights token_by_token(const WeightOfToken& weight);

// A string that follows a prefix, without the prefix, and its probability.
struct WeightedString {
  TokenString tokens;
  Rational probability;
};
// All strings of one length that a distribution can produce after a prefix.
std::vector<WeightedString> strings_of(const DistributionAfter& distribution, const TokenString& prefix,
                                       std::int32_t length);

}  // namespace draftproof
