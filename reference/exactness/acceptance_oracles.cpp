#include "reference/exactness/acceptance_oracles.hpp"

#include <algorithm>
#include <functional>

namespace draftproof {
namespace {

using Masses = DenseMasses<Rational>;

TokenString followed_by(TokenString prefix, std::size_t token) {
  prefix.push_back(static_cast<Token>(token));
  return prefix;
}

// sum over depth levels of a product along the path: E(prefix) = sum_x weight(p, q, x) (1 + E(prefix x)).
using Weight = std::function<Rational(const Masses& p, const Masses& q, std::size_t x)>;
Rational product_sum(const Models& models, const TokenString& prefix, std::int32_t depth, const Weight& weight) {
  if (depth == 0) return 0;
  const Masses p = models.target(prefix);
  const Masses q = models.draft(prefix);
  Rational sum(0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    const Rational w = weight(p, q, x);
    if (w > 0) sum += w * (1 + product_sum(models, followed_by(prefix, x), depth - 1, weight));
  }
  return sum;
}

std::size_t argmax(const Masses& masses) {
  return static_cast<std::size_t>(std::max_element(masses.begin(), masses.end()) - masses.begin());
}

// Follows the argmax of one law and sums the probabilities that the other gives to the prefixes of that path.
using Law = std::function<Masses(const TokenString& path)>;
Rational argmax_path_sum(const Law& followed, const Law& judge, TokenString path, std::int32_t depth) {
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

Rational ratio(const Rational& p, const Rational& q) {
  return std::min(Rational(1), Rational(p / q));
}

// norm(max(p - q, 0)), or nothing where it is empty.
Masses normalised_residual(const Masses& p, const Masses& q) {
  Masses r = positive_difference(p, q);
  const Rational total = total_of(r);
  if (total > 0)
    for (Rational& x : r) x /= total;
  return r;
}

}  // namespace

Rational chain_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     [](const Masses& p, const Masses& q, std::size_t x) { return std::min(p[x], q[x]); });
}

Rational chain_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  if (depth == 0) return 0;
  const Masses p = models.target(prefix);
  const Masses q = models.draft(prefix);
  Rational distance(0);
  for (std::size_t x = 0; x < p.size(); ++x) distance += abs(p[x] - q[x]) / 2;
  const Rational beta = 1 - distance;
  if (beta == 0) return 0;
  Rational further(0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    // The accepted token has the law (p + q - |p - q|) / (2 beta).
    const Rational share = (p[x] + q[x] - abs(p[x] - q[x])) / (2 * beta);
    if (share > 0) further += share * chain_recursion(models, followed_by(prefix, x), depth - 1);
  }
  return beta * (1 + further);
}

Rational greedy_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return argmax_path_sum([&](const TokenString& path) { return models.target(path); },
                         [&](const TokenString& path) { return models.draft(path); }, prefix, depth);
}

Rational one_hot_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return argmax_path_sum([&](const TokenString& path) { return models.draft(path); },
                         [&](const TokenString& path) { return models.target(path); }, prefix, depth);
}

Rational match_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     [](const Masses& p, const Masses& q, std::size_t x) { return Rational(p[x] * q[x]); });
}

Rational block_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  const std::function<Rational(const TokenString&, std::int32_t, const Rational&, const Rational&)> visit =
      [&](const TokenString& path, std::int32_t left, const Rational& a, const Rational& q_path) -> Rational {
    if (left == 0) return 0;
    const Masses p = models.target(path);
    const Masses q = models.draft(path);
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
    const Masses p = models.target(path);
    const Masses q = models.draft(path);
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
  return product_sum(models, prefix, depth, [](const Masses& p, const Masses& q, std::size_t x) -> Rational {
    if (p[x] == 0 || q[x] == 0) return 0;
    Rational sum(0);
    for (std::size_t y = 0; y < p.size(); ++y) sum += std::max(Rational(p[y] / p[x]), Rational(q[y] / q[x]));
    return 1 / sum;
  });
}

Rational naive_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, [](const Masses& p, const Masses& q, std::size_t x) {
    return Rational(p[x] * (1 - (1 - q[x]) * (1 - q[x])));
  });
}

Rational rrs_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, [](const Masses& p, const Masses& q, std::size_t x) -> Rational {
    // First trial: min(p, q). With probability 1 - beta a second, against the normalised residual.
    Rational beta(0);
    for (std::size_t y = 0; y < p.size(); ++y) beta += std::min(p[y], q[y]);
    if (beta == 1) return p[x];
    return std::min(p[x], q[x]) + (1 - beta) * std::min(normalised_residual(p, q)[x], q[x]);
  });
}

Rational greedy_draft_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, [](const Masses& p, const Masses& q, std::size_t x) -> Rational {
    // p on the top token; elsewhere min(p, q') with q' the rest of q, renormalised.
    const std::size_t top = argmax(q);
    if (x == top) return p[x];
    return q[top] == 1 ? Rational(0) : std::min(p[x], Rational(q[x] / (1 - q[top])));
  });
}

Rational target_only_pair_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, [](const Masses& p, const Masses& q, std::size_t x) -> Rational {
    Rational drafted = q[x];
    for (std::size_t y = 0; y < q.size(); ++y)
      if (y != x && q[y] > 0 && q[y] < 1) drafted += q[y] * q[x] / (1 - q[y]);
    return p[x] * drafted;
  });
}

Rational rrsw_pair_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  if (depth == 0) return 0;
  const Masses p = models.target(prefix);
  const Masses q = models.draft(prefix);
  const Masses rest = normalised_residual(p, q);
  const auto further = [&](std::size_t x) {
    return 1 + rrsw_pair_recursion(models, followed_by(prefix, x), depth - 1);
  };
  Rational sum(0);
  for (std::size_t a = 0; a < p.size(); ++a) {
    if (q[a] == 0) continue;
    const Rational first = ratio(p[a], q[a]);
    if (first > 0) sum += q[a] * first * further(a);
    for (std::size_t b = 0; b < p.size(); ++b) {
      if (b == a || q[b] == 0) continue;
      const Rational second_law = q[b] / (1 - q[a]);
      const Rational second = (1 - first) * ratio(rest[b], second_law);
      if (second > 0) sum += q[a] * second_law * second * further(b);
    }
  }
  return sum;
}

}  // namespace draftproof
