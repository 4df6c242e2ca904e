// A draft: tokens with a parent array, flattened in breadth-first order. One form for chain, multi-draft and tree: a
// chain is the tree parent[i] = i - 1. Node i has a row of its own, i + 1: the distribution after the path that ends in
// it; row 0 is the root's, the committed context. Siblings stand in the order in which they were sampled, and verifiers
// rely on that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/token.hpp"

namespace draftproof {

inline constexpr std::int32_t kRootNode = -1;

struct DraftTree {
  std::vector<Token> tokens;          // [n]
  std::vector<std::int32_t> parents;  // [n], parents[i] < i; kRootNode: child of the context

  DraftTree() = default;
  DraftTree(std::vector<Token> node_tokens, std::vector<std::int32_t> node_parents)
      : tokens(std::move(node_tokens)), parents(std::move(node_parents)) {}
  // The chain of these tokens.
  static DraftTree chain(std::span<const Token> tokens) {
    DraftTree tree;
    for (const Token token : tokens) tree.add(token, tree.size() - 1);
    return tree;
  }

  std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }
  bool empty() const { return tokens.empty(); }
  bool is_chain() const {
    for (std::int32_t i = 0; i < size(); ++i)
      if (parents[static_cast<std::size_t>(i)] != i - 1) return false;
    return true;
  }

  // The row of the distribution that a node's children are drawn from, and judged by.
  static std::uint32_t row_after(std::int32_t node) { return static_cast<std::uint32_t>(node + 1); }

  // Children of a node (kRootNode: of the context), in sampling order.
  std::vector<std::int32_t> children(std::int32_t node) const {
    std::vector<std::int32_t> found;
    for (std::int32_t i = node + 1; i < size(); ++i)
      if (parents[static_cast<std::size_t>(i)] == node) found.push_back(i);
    return found;
  }

  // Adds a node and returns its index.
  std::int32_t add(Token token, std::int32_t parent) {
    tokens.push_back(token);
    parents.push_back(parent);
    return size() - 1;
  }

  // Distance of a node from the context: 1 for its children, 0 for kRootNode.
  std::int32_t depth(std::int32_t node) const {
    std::int32_t depth = 0;
    for (; node != kRootNode; node = parents[static_cast<std::size_t>(node)]) ++depth;
    return depth;
  }
  // The deepest node's; 0 without nodes. Of a chain its length.
  std::int32_t depth_max() const {
    std::int32_t deepest = 0;
    std::vector<std::int32_t> depths;
    for (const std::int32_t parent : parents) {
      depths.push_back(parent == kRootNode ? 1 : depths[static_cast<std::size_t>(parent)] + 1);
      deepest = std::max(deepest, depths.back());
    }
    return deepest;
  }

  // Tokens on the path from the root to a node, the node's own last.
  std::vector<Token> path(std::int32_t node) const {
    std::vector<Token> reversed;
    for (; node != kRootNode; node = parents[static_cast<std::size_t>(node)])
      reversed.push_back(tokens[static_cast<std::size_t>(node)]);
    return {reversed.rbegin(), reversed.rend()};
  }
};

// Errors (input) naming `where`: lengths differ, a parent that does not come before its child, an id outside [0, V).
inline void validate(const DraftTree& tree, std::int64_t vocab_size, const std::string& where) {
  if (tree.tokens.size() != tree.parents.size())
    throw input_error(where, "the draft tree has " + std::to_string(tree.tokens.size()) + " tokens and " +
                                 std::to_string(tree.parents.size()) +
                                 " parents; expected as many of one as of the other");
  for (std::int32_t i = 0; i < tree.size(); ++i) {
    const std::int32_t parent = tree.parents[static_cast<std::size_t>(i)];
    const Token token = tree.tokens[static_cast<std::size_t>(i)];
    if (parent < kRootNode || parent >= i)
      throw input_error(where, "draft_parents[" + std::to_string(i) + "] is " + std::to_string(parent) +
                                   "; expected -1 (the context) or an earlier node");
    if (token < 0 || token >= vocab_size)
      throw input_error(where, "draft_tokens[" + std::to_string(i) + "] is " + std::to_string(token) +
                                   "; expected an id in [0, " + std::to_string(vocab_size) + ")");
  }
}

}  // namespace draftproof
