// The three ways to say how much of a draft is accepted, and the way from one to another.
//
//   conditional    a_i = P(draft i accepted | drafts 1 .. i-1 accepted)
//   unconditional  s_i = P(drafts 1 .. i accepted) = a_1 ... a_i, the survival  (vLLM's "per-position acceptance rate")
//   acceptance length  1 + s_1 + ... + s_K, the bonus or recovered token included
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace draftproof {

std::vector<double> survival_of(std::span<const double> conditional);
// A rate behind a survival of 0 is 0. Errors (input) at `where`: a survival outside [0, 1], or one that rises.
std::vector<double> conditional_of(std::span<const double> survival, const std::string& where);
double acceptance_length_of(std::span<const double> survival);

// Gain of chains of drafts, from their survival and the cost of a draft.
//
//   tokens of a step   E(K) = 1 + d (s_1 + ... + s_K)
//   speedup            S(K) = E(K) / (1 + d K c)
//
//   s_i  unconditional rate: P(the first i drafts are accepted)
//   c    cost of one draft token in target steps (of one plain step)
//   d    share of the steps that have a draft; a step without one is a plain step
//
// For s_i = a^i and d = 1, S is the walltime improvement of Leviathan, Kalman, Matias 2211.17192, Theorem 3.8:
// (1 - a^(K+1)) / ((1 - a) (K c + 1)). Both assume that a step which verifies K drafts costs what a plain one costs.

struct ChainCost {
  double draft_cost = 0.0;   // c >= 0
  double draft_share = 1.0;  // d in [0, 1]
};

// survival [K]: E(K).
double chain_tokens_per_step(std::span<const double> survival, double draft_share);

// S of a step with K drafts that yields so many tokens.
double chain_speedup(double tokens_per_step, std::int32_t drafts, const ChainCost& cost);

struct BestChain {
  std::int32_t drafts = 0;  // K; 0: plain decoding, speedup 1
  double speedup = 1.0;
};

// tokens_per_step [K_max + 1]: E(0), E(1), ... The K with the largest speedup; the least of equal ones. Draft i + 1
// pays only where s_{i+1} > c E(i) / (1 + d i c), and s never rises along one draft: so K = 0 is best exactly where
// s_1 <= c.
BestChain best_chain(std::span<const double> tokens_per_step, const ChainCost& cost);

}  // namespace draftproof
