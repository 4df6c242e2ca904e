// Greedy multi-path block verification (GBV): Thomas, Pal 2602.16961. K independent draft paths of one length L, merged
// into a prefix tree. Guarantee: distribution-exact. (Not always better than block verification of one path, nor than
// traversal.)
//
//   At every prefix the tokens have a strict total order: p/q ascending, ties by id. From the root, descend into the
//   drafted child of the highest rank. The selected path is a draw from skewed distributions: with J the probability of
//   the path so far under q, A the probability of paths that rank strictly below it, and c(x) the q-mass of tokens
//   ranked below x,
//     q~(x) = [(A + J (c + q))^K - (A + J c)^K] / [(A + J)^K - A^K].
//   Block verification of that path against q~.
//
// The order must be strict: breaking ties by who was drafted first, as the authors' code does, is biased. Ties at ratio
// 0 are the rule under top-k and top-p.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "reference/verify/block.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/tree.hpp"

namespace draftproof {

// Tokens that q can produce, by p/q ascending, ties by id.
template <class Number>
std::vector<Token> by_ratio(const DenseMasses<Number>& p, const DenseMasses<Number>& q) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < q.size(); ++i)
    if (q[i] > 0) tokens.push_back(static_cast<Token>(i));
  std::stable_sort(tokens.begin(), tokens.end(), [&](Token a, Token b) {
    const auto i = static_cast<std::size_t>(a);
    const auto j = static_cast<std::size_t>(b);
    return p[i] * q[j] < p[j] * q[i];
  });
  return tokens;
}

// sum_{i<K} a^i b^(K-1-i) = (a^K - b^K) / (a - b), without the cancellation.
template <class Number>
Number power_difference_quotient(const Number& a, const Number& b, std::int32_t num_paths) {
  Number sum(1);
  Number power(1);
  for (std::int32_t i = 1; i < num_paths; ++i) {
    power = power * b;
    sum = sum * a + power;
  }
  return sum;
}

// Selects the path and lays out its rows.
template <class Number>
struct SelectedPath {
  std::vector<std::int32_t> nodes;
  std::vector<Token> tokens;
  DenseRows<Number> target;  // L + 1 rows
  DenseRows<Number> skewed;  // L rows, q~
};

template <class Target, class Proposal>
auto select_greedy_path(const DraftTree& tree, std::int32_t num_paths, const Target& target, const Proposal& proposal) {
  using Number = typename std::remove_cvref_t<decltype(target.row(0))>::value_type;
  SelectedPath<Number> path;
  Number below(0);  // A
  Number reach(1);  // J
  for (std::int32_t node = kRootNode;;) {
    const std::uint32_t row = DraftTree::row_after(node);
    path.target.rows.push_back(target.row(row));
    const std::vector<std::int32_t> children = tree.children(node);
    if (children.empty()) return path;
    const DenseMasses<Number>& q = proposal.row(row);

    const std::vector<Token> order = by_ratio(target.row(row), q);
    const Number scale = power_difference_quotient(Number(below + reach), below, num_paths);
    DenseMasses<Number> skewed(q.size(), Number(0));
    DenseMasses<Number> ranked_below(q.size(), Number(0));  // A + J c(x)
    Number cumulative = below;
    std::int32_t chosen = kRootNode;
    for (const Token token : order) {
      const auto x = static_cast<std::size_t>(token);
      ranked_below[x] = cumulative;
      cumulative = cumulative + reach * q[x];
      skewed[x] = q[x] * power_difference_quotient(cumulative, ranked_below[x], num_paths) / scale;
      for (const std::int32_t child : children)
        if (tree.tokens[static_cast<std::size_t>(child)] == token) chosen = child;  // the last one found ranks highest
    }
    if (chosen == kRootNode) return path;  // no child that q can produce: as at a leaf
    const Token token = tree.tokens[static_cast<std::size_t>(chosen)];
    below = ranked_below[static_cast<std::size_t>(token)];
    reach = reach * q[static_cast<std::size_t>(token)];
    path.nodes.push_back(chosen);
    path.tokens.push_back(token);
    path.skewed.rows.push_back(std::move(skewed));
    node = chosen;
  }
}

// tree: num_paths independent paths of one length, merged (draft/sampled_tree.hpp). Coins and draws have the rows of a
// chain.
template <class Target, class Proposal, class Chance>
TreeOutcome verify_greedy_multipath(const DraftTree& tree, std::int32_t num_paths, const Target& target,
                                    const Proposal& proposal, Chance& chance) {
  auto path = select_greedy_path(tree, num_paths, target, proposal);
  const ChainOutcome outcome = verify_block(std::span<const Token>(path.tokens), path.target, path.skewed, chance);
  path.nodes.resize(outcome.num_accepted);
  return {path.nodes, outcome.last_token};
}

}  // namespace draftproof
