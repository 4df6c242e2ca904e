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
#pragma once

#include <cstdint>
#include <span>

namespace draftproof {

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
