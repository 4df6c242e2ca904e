#include "reference/verify/tree_attention.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

std::size_t row_of(std::int32_t node) {
  return DraftTree::row_after(node);
}

void check(std::span<const std::int32_t> parents) {
  for (std::size_t i = 0; i < parents.size(); ++i)
    if (parents[i] < kRootNode || parents[i] >= static_cast<std::int32_t>(i))
      throw input_error("draft tree", "the parent of node " + std::to_string(i) + " is " + std::to_string(parents[i]) +
                                          "; expected -1 (the context) or an earlier node");
}

}  // namespace

std::vector<std::int32_t> breadth_first_order(std::span<const std::int32_t> parents) {
  check(parents);
  std::vector<std::vector<std::int32_t>> children(parents.size() + 1);
  for (std::size_t i = 0; i < parents.size(); ++i) children[row_of(parents[i])].push_back(static_cast<std::int32_t>(i));
  std::vector<std::int32_t> order = children[0];
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::vector<std::int32_t>& next = children[row_of(order[i])];
    order.insert(order.end(), next.begin(), next.end());
  }
  return order;
}

DraftTree reordered(const DraftTree& tree, std::span<const std::int32_t> order) {
  std::vector<std::int32_t> new_node(tree.tokens.size() + 1, kRootNode);
  DraftTree result;
  for (const std::int32_t old : order) {
    const auto i = static_cast<std::size_t>(old);
    new_node[row_of(old)] = result.add(tree.tokens[i], new_node[row_of(tree.parents[i])]);
  }
  return result;
}

std::vector<std::int32_t> tree_depths(std::span<const std::int32_t> parents) {
  check(parents);
  std::vector<std::int32_t> depths(parents.size() + 1, 0);
  for (std::size_t i = 0; i < parents.size(); ++i) depths[i + 1] = depths[row_of(parents[i])] + 1;
  return depths;
}

std::vector<bool> tree_mask(std::span<const std::int32_t> parents) {
  const PackedTreeMask packed = packed_tree_mask(parents);
  const std::size_t size = parents.size() + 1;
  std::vector<bool> mask(size * size);
  for (std::size_t r = 0; r < size; ++r)
    for (std::size_t c = 0; c < size; ++c)
      mask[r * size + c] = (packed.words[r * static_cast<std::size_t>(packed.words_per_row) + c / 32] >> c % 32) & 1u;
  return mask;
}

PackedTreeMask packed_tree_mask(std::span<const std::int32_t> parents) {
  check(parents);
  const std::size_t rows = parents.size() + 1;
  const std::size_t words = (rows + 31) / 32;
  PackedTreeMask mask{static_cast<std::int32_t>(rows), static_cast<std::int32_t>(words), {}};
  mask.words.assign(rows * words, 0);
  for (std::size_t r = 0; r < rows; ++r) {
    if (r > 0) {  // a row is its parent's row and itself
      const std::size_t parent = row_of(parents[r - 1]);
      std::copy_n(mask.words.begin() + static_cast<std::ptrdiff_t>(parent * words), words,
                  mask.words.begin() + static_cast<std::ptrdiff_t>(r * words));
    }
    mask.words[r * words + r / 32] |= 1u << r % 32;
  }
  return mask;
}

}  // namespace draftproof
