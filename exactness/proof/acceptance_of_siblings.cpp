// Rules that judge the siblings of one node at a time, top-down: a weight for every token of the node's vocabulary, and
// a product of weights along every path.
#include <algorithm>

#include "exactness/proof/acceptance_sums.hpp"
#include "reference/verify/optimal_transport.hpp"
#include "reference/verify/sibling_rules/k_seq.hpp"

namespace draftproof {
namespace {

// Two independent siblings, every ordered pair: weights += Pr(a, b) add(a, b).
template <class Add>
void for_each_independent_pair(const ExactMasses& q, Add add) {
  for (std::size_t a = 0; a < q.size(); ++a)
    for (std::size_t b = 0; b < q.size(); ++b)
      if (q[a] > 0 && q[b] > 0) add(a, b, Rational(q[a] * q[b]));
}

// k-sequential selection with two siblings: rho, min(q, p / rho), and the distribution that is emitted from once both
// have been rejected.
constexpr std::int32_t kSiblings = 2;
using Rho = Rational (*)(const ExactMasses& p, const ExactMasses& q);

Rational smallest_rho(const ExactMasses& p, const ExactMasses& q) {
  return k_seq_rho(p, q, static_cast<std::size_t>(kSiblings));
}
Rational greatest_rho(const ExactMasses&, const ExactMasses&) {
  return kSiblings;
}

struct KSeq {
  ExactMasses accepted;  // of one trial
  Rational beta;         // their sum
  Rational trials;       // (1 - (1 - beta)^2) / beta
  ExactMasses residual;
};

KSeq k_seq_of(const ExactMasses& p, const ExactMasses& q, const Rational& rho) {
  KSeq out;
  for (std::size_t x = 0; x < p.size(); ++x) out.accepted.push_back(std::min(q[x], Rational(p[x] / rho)));
  out.beta = total_of(out.accepted);
  out.trials = 2 - out.beta;
  ExactMasses accepted = out.accepted;
  for (Rational& x : accepted) x *= out.trials;
  out.residual = normalised_residual(p, accepted);
  return out;
}

Weights k_seq_closed_form(Rho rho) {
  return [rho](const ExactMasses& p, const ExactMasses& q) {
    const KSeq rule = k_seq_of(p, q, rho(p, q));
    ExactMasses weights;
    for (std::size_t x = 0; x < p.size(); ++x) {
      // Both rejected and x among them: both rejected, less both rejected and neither of them x.
      const Rational rejected = 1 - rule.beta;
      const Rational rejected_as_x = q[x] - rule.accepted[x];
      const Rational other = rejected - rejected_as_x;
      weights.push_back(rule.accepted[x] * rule.trials + rule.residual[x] * (rejected * rejected - other * other));
    }
    return weights;
  };
}

Weights k_seq_pairs(Rho rho) {
  return [rho](const ExactMasses& p, const ExactMasses& q) {
    const Rational divisor = rho(p, q);
    const KSeq rule = k_seq_of(p, q, divisor);
    ExactMasses weights(p.size(), Rational(0));
    for_each_independent_pair(q, [&](std::size_t a, std::size_t b, const Rational& probability) {
      const Rational first = ratio(p[a], divisor * q[a]);
      const Rational second = ratio(p[b], divisor * q[b]);
      const Rational both_rejected = probability * (1 - first) * (1 - second);
      weights[a] += probability * first;
      weights[b] += probability * (1 - first) * second;
      weights[a] += both_rejected * rule.residual[a];
      if (b != a) weights[b] += both_rejected * rule.residual[b];
    });
    return weights;
  };
}

}  // namespace

Rational naive_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) {
                       return Rational(p[x] * (1 - (1 - q[x]) * (1 - q[x])));
                     }));
}

Rational naive_pair_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, [](const ExactMasses& p, const ExactMasses& q) {
    ExactMasses weights(p.size(), Rational(0));
    for_each_independent_pair(q, [&](std::size_t a, std::size_t b, const Rational& probability) {
      for (std::size_t y = 0; y < p.size(); ++y)
        if (y == a || y == b) weights[y] += probability * p[y];
    });
    return weights;
  });
}

Rational rrs_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) -> Rational {
                       // First trial: min(p, q). With probability 1 - beta a second, against the normalised residual.
                       Rational beta(0);
                       for (std::size_t y = 0; y < p.size(); ++y) beta += std::min(p[y], q[y]);
                       if (beta == 1) return p[x];
                       return std::min(p[x], q[x]) + (1 - beta) * std::min(normalised_residual(p, q)[x], q[x]);
                     }));
}

Rational rrs_pair_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, [](const ExactMasses& p, const ExactMasses& q) {
    const ExactMasses rest = normalised_residual(p, q);
    ExactMasses weights(p.size(), Rational(0));
    for_each_independent_pair(q, [&](std::size_t a, std::size_t b, const Rational& probability) {
      const Rational first = ratio(p[a], q[a]);
      weights[a] += probability * first;
      weights[b] += probability * (1 - first) * ratio(rest[b], q[b]);
    });
    return weights;
  });
}

Rational greedy_draft_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) -> Rational {
                       // p on the top token; elsewhere min(p, q') with q' the rest of q, renormalised.
                       const std::size_t top = argmax(q);
                       if (x == top) return p[x];
                       return q[top] == 1 ? Rational(0) : std::min(p[x], Rational(q[x] / (1 - q[top])));
                     }));
}

Rational greedy_draft_draw_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, [](const ExactMasses& p, const ExactMasses& q) {
    const std::size_t top = argmax(q);
    const ExactMasses rest = without(q, top);
    const ExactMasses residual = normalised_residual(p, rest);
    ExactMasses weights(p.size(), Rational(0));
    // Nothing beside the top token can be drafted: then no coin is tossed, and the draw from p may hit it.
    if (total_of(rest) == 0) weights[top] = p[top];
    for (std::size_t y = 0; y < p.size(); ++y) {
      if (rest[y] == 0) continue;
      const Rational accepted = ratio(p[y], rest[y]);
      weights[y] += rest[y] * accepted;
      weights[top] += rest[y] * (1 - accepted) * residual[top];
    }
    return weights;
  });
}

Rational target_only_pair_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) {
                       Rational drafted = q[x];
                       for (std::size_t y = 0; y < q.size(); ++y)
                         if (y != x && q[y] > 0 && q[y] < 1) drafted += q[y] * q[x] / (1 - q[y]);
                       return Rational(p[x] * drafted);
                     }));
}

Rational target_only_complement(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth,
                     token_by_token([](const ExactMasses& p, const ExactMasses& q, std::size_t x) {
                       Rational not_drafted(0);
                       for (std::size_t a = 0; a < q.size(); ++a) {
                         if (a == x || q[a] == 0) continue;
                         // A certain token has no second sibling beside it.
                         const ExactMasses rest = without(q, a);
                         not_drafted += q[a] * (1 - rest[x]);
                       }
                       return Rational(p[x] * (1 - not_drafted));
                     }));
}

Rational rrsw_pair_recursion(const Models& models, const TokenString& prefix, std::int32_t depth) {
  if (depth == 0) return 0;
  const ExactMasses& p = models.target(prefix);
  const ExactMasses& q = models.draft(prefix);
  const ExactMasses rest = normalised_residual(p, q);
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
      const Rational second_distribution = q[b] / (1 - q[a]);
      const Rational second = (1 - first) * ratio(rest[b], second_distribution);
      if (second > 0) sum += q[a] * second_distribution * second * further(b);
    }
  }
  return sum;
}

Rational rrsw_complement(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, [](const ExactMasses& p, const ExactMasses& q) {
    const ExactMasses after_first = normalised_residual(p, q);
    ExactMasses weights = p;
    const auto recovered = [&](const Rational& probability, const ExactMasses& distribution) {
      for (std::size_t x = 0; x < p.size(); ++x) weights[x] -= probability * distribution[x];
    };
    for (std::size_t a = 0; a < p.size(); ++a) {
      if (q[a] == 0) continue;
      const Rational first_rejected = q[a] * (1 - ratio(p[a], q[a]));
      const ExactMasses undrafted = without(q, a);
      if (total_of(undrafted) == 0) recovered(first_rejected, after_first);  // a certain token is the only sibling
      const ExactMasses after_second = normalised_residual(after_first, undrafted);
      for (std::size_t b = 0; b < p.size(); ++b)
        if (undrafted[b] > 0)
          recovered(first_rejected * undrafted[b] * (1 - ratio(after_first[b], undrafted[b])), after_second);
    }
    return weights;
  });
}

Rational optimal_pair_bound(const Models& models, const TokenString& prefix, std::int32_t depth) {
  if (depth == 0) return 0;
  return optimal_acceptance_with_replacement(models.target(prefix), models.draft(prefix), 2);
}

Rational optimal_pair_cut(const Models& models, const TokenString& prefix, std::int32_t depth) {
  if (depth == 0) return 0;
  const ExactMasses& p = models.target(prefix);
  const ExactMasses& q = models.draft(prefix);
  Rational best(1);
  for (std::uint32_t set = 0; set < std::uint32_t{1} << p.size(); ++set) {
    const auto holds = [&](std::size_t x) { return (set >> x & 1) != 0; };
    Rational cut(0);
    for (std::size_t x = 0; x < p.size(); ++x)
      if (holds(x)) cut += p[x];
    for_each_independent_pair(q, [&](std::size_t a, std::size_t b, const Rational& probability) {
      if (!holds(a) || !holds(b)) cut += probability;
    });
    best = std::min(best, cut);
  }
  return best;
}

Rational k_seq_closed_form_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, k_seq_closed_form(smallest_rho));
}

Rational k_seq_pair_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, k_seq_pairs(smallest_rho));
}

Rational k_seq_rho_k_closed_form_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, k_seq_closed_form(greatest_rho));
}

Rational k_seq_rho_k_pair_sum(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return product_sum(models, prefix, depth, k_seq_pairs(greatest_rho));
}

}  // namespace draftproof
