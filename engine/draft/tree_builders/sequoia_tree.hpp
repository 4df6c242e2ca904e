// Sequoia's static tree by dynamic programming: Chen et al. 2402.12374, section 4.1. Given how likely the b-th child of
// a node is the accepted one, the same at every node, which shape of n nodes yields the most tokens a step?
//
//   F(T) = sum over the nodes v of T, the context among them, of the product of a_b along the path to v
//   T[n][d][b] = max_y  T[y][d][b-1] + a_b max_b' T[n-y][d-1][b']
//
// n counts the context, b the children of the root of the subtree, d the levels below it. Time O(n^2 d b), once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/verify/tree_shape.hpp"

namespace draftproof {

class SequoiaTrees {
 public:
  // acceptance [b]: a_1, a_2, ..., the probability that child b is the accepted one of its siblings. Errors (usage):
  // an a_b outside [0, 1], a sum above 1, num_drafts_max < 0, depth_max < 0.
  SequoiaTrees(std::span<const double> acceptance, std::int32_t num_drafts_max, std::int32_t depth_max);

  // Is there a tree of so many drafts, at most `depth` deep, with no more children a node than `acceptance` has?
  bool fits(std::int32_t num_drafts, std::int32_t depth) const;
  // The largest F: expected tokens of a step, the bonus token included. num_drafts = n - 1. Errors (usage) of both: not
  // within the maxima, or no such tree.
  double expected_tokens(std::int32_t num_drafts, std::int32_t depth) const;
  // A tree that attains it. The b-th child of a node in it has rank b.
  TreeShape shape(std::int32_t num_drafts, std::int32_t depth) const;

 private:
  double& value(std::int32_t n, std::int32_t d, std::int32_t b) { return values_[index(n, d, b)]; }
  double value(std::int32_t n, std::int32_t d, std::int32_t b) const { return values_[index(n, d, b)]; }
  std::size_t index(std::int32_t n, std::int32_t d, std::int32_t b) const;
  double value_with(std::int32_t first_part, std::int32_t n, std::int32_t d, std::int32_t b) const;
  std::int32_t best_width(std::int32_t n, std::int32_t d) const;
  void check(std::int32_t num_drafts, std::int32_t depth) const;

  std::vector<double> acceptance_;
  std::int32_t num_drafts_max_;
  std::int32_t depth_max_;
  std::vector<double> values_;        // T; -1 where there is no such tree
  std::vector<std::int32_t> widths_;  // [n, d] -> argmax_b T[n][d][b], the least
};

}  // namespace draftproof
