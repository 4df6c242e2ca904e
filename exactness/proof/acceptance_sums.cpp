#include "exactness/proof/acceptance_sums.hpp"

#include <algorithm>

namespace draftproof {

DistributionAfter target_of(const Models& models) {
  return [&models](const TokenString& path) { return models.target(path); };
}
DistributionAfter draft_of(const Models& models) {
  return [&models](const TokenString& path) { return models.draft(path); };
}

TokenString followed_by(TokenString prefix, std::size_t token) {
  prefix.push_back(static_cast<Token>(token));
  return prefix;
}

std::size_t argmax(const ExactMasses& masses) {
  return static_cast<std::size_t>(std::max_element(masses.begin(), masses.end()) - masses.begin());
}

Rational power(const Rational& base, std::int32_t exponent) {
  Rational out(1);
  for (std::int32_t i = 0; i < exponent; ++i) out *= base;
  return out;
}

Rational ratio(const Rational& p, const Rational& q) {
  return std::min(Rational(1), Rational(p / q));
}

ExactMasses normalised_or_empty(ExactMasses masses) {
  const Rational total = total_of(masses);
  if (total > 0)
    for (Rational& x : masses) x /= total;
  return masses;
}

ExactMasses normalised_residual(const ExactMasses& p, const ExactMasses& q) {
  return normalised_or_empty(positive_difference(p, q));
}

ExactMasses without(ExactMasses q, std::size_t token) {
  q[token] = 0;
  return normalised_or_empty(std::move(q));
}

Rational product_sum(const Models& models, const TokenString& prefix, std::int32_t depth, const Weights& weights) {
  if (depth == 0) return 0;
  const ExactMasses w = weights(models.target(prefix), models.draft(prefix));
  Rational sum(0);
  for (std::size_t x = 0; x < w.size(); ++x)
    if (w[x] > 0) sum += w[x] * (1 + product_sum(models, followed_by(prefix, x), depth - 1, weights));
  return sum;
}

Weights token_by_token(const WeightOfToken& weight) {
  return [weight](const ExactMasses& p, const ExactMasses& q) {
    ExactMasses weights;
    for (std::size_t x = 0; x < p.size(); ++x) weights.push_back(weight(p, q, x));
    return weights;
  };
}

std::vector<WeightedString> strings_of(const DistributionAfter& distribution, const TokenString& prefix,
                                       std::int32_t length) {
  std::vector<WeightedString> strings{{{}, 1}};
  for (std::int32_t level = 0; level < length; ++level) {
    std::vector<WeightedString> longer;
    for (const WeightedString& string : strings) {
      TokenString path = prefix;
      path.insert(path.end(), string.tokens.begin(), string.tokens.end());
      const ExactMasses masses = distribution(path);
      for (std::size_t x = 0; x < masses.size(); ++x)
        if (masses[x] > 0) longer.push_back({followed_by(string.tokens, x), string.probability * masses[x]});
    }
    strings = std::move(longer);
  }
  return strings;
}

}  // namespace draftproof
