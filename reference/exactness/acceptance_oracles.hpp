// Expected numbers of accepted drafts, computed from the models alone: path sums and recursions that share no code with
// the verifiers (verifiers.md sections 1, 2, 3, 4, 9 restate the formulas with their sources). All take (models,
// prefix, depth).
#pragma once

#include "reference/exactness/model_pair.hpp"
#include "reference/exactness/output_law.hpp"

namespace draftproof {

using Models = ModelPair<Rational>;

// Chain: E[tau] = sum over l and x^l of prod min(p, q).
Rational chain_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
// The same from beta = 1 - TV(p, q) and the law of the accepted token, step by step.
Rational chain_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);

// Greedy target: E[tau] = sum of the draft's probabilities of the greedy path's prefixes.
Rational greedy_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
// One-hot proposals along the draft's argmax path: sum of the target's probabilities of its prefixes.
Rational one_hot_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// Sampler match: sum over x^l of prod p q.
Rational match_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// Block verification: the A-recursion, A(x^l) = min(A(x^(l-1)) p, q(x^l)), summed; and E over drafts of p_l.
Rational block_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational block_path_expectation(const Models& models, const TokenString& prefix, std::int32_t depth);

// Coupled chain: sum over x^l of prod 1 / sum_y max(p_y/p_x, q_y/q_x).
Rational coupled_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// Two i.i.d. siblings at every node. Naive sampling: p(x) (1 - (1 - q(x))^2) along the path. RRS: two trials.
Rational naive_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational rrs_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);

// The most probable token of q and one draw from the rest.
Rational greedy_draft_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);

// Two siblings without replacement at every node. Target-only: sum over nodes of p times the chance of being drafted.
Rational target_only_pair_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
// RRSw, summed over the ordered pairs of siblings.
Rational rrsw_pair_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);

}  // namespace draftproof
