// One chain of drafts.
#include <algorithm>

#include "exactness/proof/acceptance_sums.hpp"
#include "reference/verify/enumerating_chance.hpp"

namespace draftproof {
namespace {

// Follows the argmax of one distribution and sums the probabilities that the other gives to the prefixes of that path.
Rational argmax_path_sum(const DistributionAfter& followed, const DistributionAfter& judge, TokenString path,
                         std::int32_t depth) {
  Rational sum(0);
  Rational probability(1);
  for (std::int32_t i = 0; i < depth; ++i) {
    const std::size_t token = argmax(followed(path));
    probability *= judge(path)[token];
    sum += probability;
    path.push_back(static_cast<Token>(token));
  }
  return sum;
}

// The distribution that is certain of the argmax.
DistributionAfter certain_argmax(const DistributionAfter& distribution) {
  return [distribution](const TokenString& path) {
    const ExactMasses masses = distribution(path);
    ExactMasses certain(masses.size(), Rational(0));
    certain[argmax(masses)] = 1;
    return certain;
  };
}

// E[length of the common prefix] of two independent strings, over all pairs of whole strings.
Rational mean_common_prefix(const DistributionAfter& a, const DistributionAfter& b, const TokenString& prefix,
                            std::int32_t length) {
  const std::vector<WeightedString> others = strings_of(b, prefix, length);
  Rational sum(0);
  for (const WeightedString& s : strings_of(a, prefix, length)) {
    Rational common_with_s(0);
    for (const WeightedString& t : others) {
      const auto common = std::mismatch(s.tokens.begin(), s.tokens.end(), t.tokens.begin()).first - s.tokens.begin();
      if (common > 0) common_with_s += t.probability * common;
    }
    sum += s.probability * common_with_s;
  }
  return sum;
}

}  // namespace

Rational chain_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(
      models, prefix, depth,
      token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) { return std::min(p[x], q[x]); }));
}

Rational chain_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  if (depth == 0) return 0;
  const ExactMasses& p = models.target(prefix);
  const ExactMasses& q = models.draft(prefix);
  Rational distance(0);
  for (std::size_t x = 0; x < p.size(); ++x) distance += abs(p[x] - q[x]) / 2;
  const Rational beta = 1 - distance;
  if (beta == 0) return 0;
  Rational further(0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    // The accepted token has the distribution (p + q - |p - q|) / (2 beta).
    const Rational share = (p[x] + q[x] - abs(p[x] - q[x])) / (2 * beta);
    if (share > 0) further += share * chain_recursion(models, followed_by(prefix, x), depth - 1);
  }
  return beta * (1 + further);
}

Rational greedy_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return argmax_path_sum(target_of(models), draft_of(models), prefix, depth);
}

Rational greedy_string_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return mean_common_prefix(certain_argmax(target_of(models)), draft_of(models), prefix, depth);
}

Rational one_hot_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return argmax_path_sum(draft_of(models), target_of(models), prefix, depth);
}

Rational one_hot_string_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return mean_common_prefix(target_of(models), certain_argmax(draft_of(models)), prefix, depth);
}

Rational match_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(
      models, prefix, depth,
      token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) { return Rational(p[x] * q[x]); }));
}

Rational match_string_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return mean_common_prefix(target_of(models), draft_of(models), prefix, depth);
}

Rational block_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  const std::function<Rational(const TokenString&, std::int32_t, const Rational&, const Rational&)> visit =
      [&](const TokenString& path, std::int32_t left, const Rational& a, const Rational& q_path) -> Rational {
    if (left == 0) return 0;
    const ExactMasses& p = models.target(path);
    const ExactMasses& q = models.draft(path);
    Rational sum(0);
    for (std::size_t x = 0; x < p.size(); ++x) {
      const Rational q_next = q_path * q[x];
      const Rational a_next = std::min(Rational(a * p[x]), q_next);
      if (a_next > 0) sum += a_next + visit(followed_by(path, x), left - 1, a_next, q_next);
    }
    return sum;
  };
  return visit(prefix, depth, 1, 1);
}

Rational block_path_expectation(const Models& models, const TokenString& prefix, std::int32_t depth) {
  const std::function<Rational(const TokenString&, std::int32_t, const Rational&, const Rational&)> visit =
      [&](const TokenString& path, std::int32_t left, const Rational& weight, const Rational& q_path) -> Rational {
    if (left == 0) return 0;
    const ExactMasses& p = models.target(path);
    const ExactMasses& q = models.draft(path);
    Rational sum(0);
    for (std::size_t x = 0; x < p.size(); ++x) {
      if (q[x] == 0) continue;
      const Rational next = ratio(weight * p[x], q[x]);  // p_l of this draft
      if (next > 0) sum += q_path * q[x] * next + visit(followed_by(path, x), left - 1, next, q_path * q[x]);
    }
    return sum;
  };
  return visit(prefix, depth, 1, 1);
}

Rational coupled_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) -> Rational {
                       if (p[x] == 0 || q[x] == 0) return 0;
                       Rational sum(0);
                       for (std::size_t y = 0; y < p.size(); ++y)
                         sum += std::max(Rational(p[y] / p[x]), Rational(q[y] / q[x]));
                       return 1 / sum;
                     }));
}

Rational coupled_complement(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) {
                       Rational won_by_both = p[x];
                       for (std::size_t y = 0; y < q.size(); ++y)
                         if (y != x)
                           won_by_both -= joint_race_probability(p, static_cast<Token>(x), q, static_cast<Token>(y));
                       return won_by_both;
                     }));
}

}  // namespace draftproof
