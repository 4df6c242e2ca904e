// Inputs for judging a whole draft tree in one target pass: the order of the nodes, their positions, who attends to
// whom, and the paths from which the longest accepted one is read. Row 0 is the token that the tree hangs from, row i +
// 1 is node i (DraftTree::row_after).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/verify/draft_tree.hpp"

namespace draftproof {

// parents [n] as in DraftTree and TreeShape. Errors (input) of all functions: a parent that does not come before its
// child, naming the node.

// Nodes by (depth, then place of the parent, then place among the siblings): the order that DraftTree asks for.
std::vector<std::int32_t> breadth_first_order(std::span<const std::int32_t> parents);

// The tree with its nodes in another order, each after its parent: new node i is old node order[i].
DraftTree reordered(const DraftTree& tree, std::span<const std::int32_t> order);

// [n + 1]: the distance from the root; a token's position is that of the root plus this.
std::vector<std::int32_t> tree_depths(std::span<const std::int32_t> parents);

// [n + 1, n + 1], row-major: does row r attend to row c? Ancestors and itself. What comes before the root is attended
// to by all rows and is not part of the mask.
std::vector<bool> tree_mask(std::span<const std::int32_t> parents);

// The same with 32 columns a word: [n + 1, words_per_row], column c is bit c % 32 of word c / 32; unused bits are 0.
struct PackedTreeMask {
  std::int32_t rows = 0;
  std::int32_t words_per_row = 0;
  std::vector<std::uint32_t> words;
};
PackedTreeMask packed_tree_mask(std::span<const std::int32_t> parents);

}  // namespace draftproof
