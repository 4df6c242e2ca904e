// Expected numbers of accepted drafts, two ways for every lossless verifier, computed from the models alone: path sums,
// sums over whole drafts and recursions that share no code with the verifiers (definitions and sources:
// docs/verifiers.md sections 1 to 8). All take (models, prefix, depth).
#pragma once

#include "exactness/model_pair.hpp"
#include "exactness/proof/output_distribution.hpp"

namespace draftproof {

using Models = ModelPair<Rational>;

// ---- One chain ----

// Chain: E[tau] = sum over l and x^l of prod min(p, q).
Rational chain_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
// The same from beta = 1 - TV(p, q) and the distribution of the accepted token, step by step.
Rational chain_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);

// Greedy target: E[tau] = sum of the draft's probabilities of the greedy path's prefixes.
Rational greedy_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
// The same as a sum over whole drafts of the length that they share with the greedy path.
Rational greedy_string_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// One-hot proposals along the draft's argmax path: sum of the target's probabilities of its prefixes.
Rational one_hot_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
// The same as a sum over whole target strings: a one-hot proposal is accepted just when the target would have drawn it.
Rational one_hot_string_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// Sampler match: sum over x^l of prod p q.
Rational match_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
// The same as a sum over pairs of whole strings, of the target and of the draft, of the length that they share.
Rational match_string_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// Block verification: the A-recursion, A(x^l) = min(A(x^(l-1)) p, q(x^l)), summed; and E over drafts of p_l.
Rational block_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational block_path_expectation(const Models& models, const TokenString& prefix, std::int32_t depth);

// Coupled chain: sum over x^l of prod 1 / sum_y max(p_y/p_x, q_y/q_x).
Rational coupled_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
// The same from what the target wins alone: p(x) less Pr(x wins the target's race and another token the draft's).
Rational coupled_complement(const Models& models, const TokenString& prefix, std::int32_t depth);

// ---- Two siblings at every node, judged top-down ----

// Independent siblings. Naive sampling: p(x) (1 - (1 - q(x))^2) along the path; and over the pairs of siblings and the
// target's token.
Rational naive_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational naive_pair_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// RRS: two trials; and over the ordered pairs of siblings, trial by trial.
Rational rrs_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational rrs_pair_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// k-sequential selection (docs/verifiers.md section 5) with rho* and with rho = 2. A residual draw that hits a sibling
// counts as accepted: acc(x) (1 - (1 - beta)^2) / beta + r(x) [(1 - beta)^2 - (1 - beta - rej(x))^2], where a trial
// accepts x with acc = min(q, p / rho), rejects it with rej = q - acc, and r is the residual distribution; and over the
// ordered pairs.
Rational k_seq_closed_form_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational k_seq_pair_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational k_seq_rho_k_closed_form_sum(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational k_seq_rho_k_pair_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// One node with two independent siblings, optimal transport: the least p(H) + 1 - Pr(both in H) over prefixes of the
// tokens by q/p; and over all sets H, the pairs counted. Down one level only: what lies below depends on which of
// several optimal plans was taken.
Rational optimal_pair_bound(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational optimal_pair_cut(const Models& models, const TokenString& prefix, std::int32_t depth);

// The most probable token of q and one draw from the rest: in closed form; and over that draw, with what its rejection
// gives to the top token.
Rational greedy_draft_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational greedy_draft_draw_sum(const Models& models, const TokenString& prefix, std::int32_t depth);

// Siblings without replacement. Target-only: sum over nodes of p times the chance of being drafted; and of p times one
// minus the chance that neither sibling is this token.
Rational target_only_pair_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational target_only_complement(const Models& models, const TokenString& prefix, std::int32_t depth);

// RRSw, summed over the ordered pairs of siblings; and p(x) less Pr(x is the token recovered after all rejections).
Rational rrsw_pair_recursion(const Models& models, const TokenString& prefix, std::int32_t depth);
Rational rrsw_complement(const Models& models, const TokenString& prefix, std::int32_t depth);

// ---- Trees of any width: independent paths merged by first appearance, or `width` distinct children of every node
// ----

// RRSw on merged paths: over whole paths and down their tree; and by the number of paths through a prefix.
Rational rrsw_merged_tree_sum(const Models& models, const TokenString& prefix, std::int32_t depth,
                              std::int32_t num_paths);
Rational rrsw_merged_recursion(const Models& models, const TokenString& prefix, std::int32_t depth,
                               std::int32_t num_paths);

// Traversal verification: over whole trees, leaf by leaf as it is defined (docs/verifiers.md section 6); and from
// w(v) = Pr(accepted path passes through v | v is drafted and judged), child by child, without a look at any leaf.
Rational traversal_tree_sum(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width);
Rational traversal_recursion(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width);
Rational traversal_merged_tree_sum(const Models& models, const TokenString& prefix, std::int32_t depth,
                                   std::int32_t num_paths);
Rational traversal_merged_recursion(const Models& models, const TokenString& prefix, std::int32_t depth,
                                    std::int32_t num_paths);

// Greedy multi-path: the A-recursion of block verification with the distribution of the greatest of K drafts, by rank;
// and E over that draft of p_l, with its distribution by comparing the drafts in pairs.
Rational greedy_multipath_recursion(const Models& models, const TokenString& prefix, std::int32_t depth,
                                    std::int32_t num_paths);
Rational greedy_multipath_path_expectation(const Models& models, const TokenString& prefix, std::int32_t depth,
                                           std::int32_t num_paths);

// A list of independent paths, followed by the target's own tokens: sum over strings x^l of P(x^l) (1 - (1 -
// Q(x^l))^K); and by the number of paths that are still in play.
Rational list_match_path_sum(const Models& models, const TokenString& prefix, std::int32_t depth,
                             std::int32_t num_paths);
Rational list_match_recursion(const Models& models, const TokenString& prefix, std::int32_t depth,
                              std::int32_t num_paths);

// ---- The width + 1 best strings of the draft model, of tokens among the `width` most probable at their place ----
// Best by the product of q, shorter strings first where it ties, then by their prefixes, then by id. That is EAGLE-2's
// tree of width + 1 nodes: with so few no node of it hangs from one that was not among the best of its level. Judged by
// the target's own tokens, as any tree may be: sum over the strings of the target's probability; and over whole target
// strings.
Rational best_string_sum(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width);
Rational best_string_matches(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width);

// Such an oracle at width 2, with the arguments that all the others have.
template <auto kOracle>
Rational of_two(const Models& models, const TokenString& prefix, std::int32_t depth) {
  return kOracle(models, prefix, depth, 2);
}

}  // namespace draftproof
