// A fixed draft tree given as index paths, as Medusa's heads use it: Cai et al. 2401.10774, section 3.1. The path (i_1,
// ..., i_d) is the node that takes the i_1-th best candidate of depth 1, then the i_2-th of depth 2, and so on, ranks
// from 0. Every prefix of a path must be a path too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/verify/draft_tree.hpp"
#include "reference/verify/tree_shape.hpp"

namespace draftproof {

using IndexPath = std::vector<std::int32_t>;

struct StaticTree {
  std::vector<IndexPath> paths;  // [n], sorted by (length, lexicographic): breadth first
  TreeShape shape;               // [n]

  std::int32_t depth(std::int32_t node) const { return static_cast<std::int32_t>(paths[node_index(node)].size()); }
  std::int32_t rank(std::int32_t node) const { return paths[node_index(node)].back(); }
  // Where the node's token stands in the list [root token, top_k candidates of depth 1, top_k of depth 2, ...].
  std::int64_t candidate_index(std::int32_t node, std::int32_t top_k) const {
    return 1 + static_cast<std::int64_t>(top_k) * (depth(node) - 1) + rank(node);
  }

 private:
  static std::size_t node_index(std::int32_t node) { return static_cast<std::size_t>(node); }
};

// Errors (input) naming `where` and the path: an empty path, a negative rank, a path given twice, a prefix that is not
// given.
StaticTree make_static_tree(std::vector<IndexPath> paths, const std::string& where);

// candidates [depth][rank]: the tokens that head `depth` + 1 ranks best. Errors (input) naming `where`: too few depths
// or ranks for the tree, a token twice at one depth.
DraftTree fill_static_tree(const StaticTree& tree, std::span<const std::vector<Token>> candidates,
                           const std::string& where);

}  // namespace draftproof
