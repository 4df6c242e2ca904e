// A draft: tokens with a parent array, flattened in breadth-first order. One form for chain, multi-draft and tree: a
// chain is the tree parent[i] = i - 1. Node i has a row of its own, i + 1: the distribution after the path that ends in
// it; row 0 is the root's, the committed context. Siblings stand in the order in which they were sampled, and verifiers
// rely on that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/error.hpp"
#include "reference/token.hpp"

namespace draftproof {

inline constexpr std::int32_t kRootNode = -1;

struct DraftTree {
  std::vector<Token> tokens;          // [n]
  std::vector<std::int32_t> parents;  // [n], parents[i] < i; kRootNode: child of the context

  std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }

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
                                 std::to_string(tree.parents.size()) + " parents; they must agree");
  for (std::int32_t i = 0; i < tree.size(); ++i) {
    const std::int32_t parent = tree.parents[static_cast<std::size_t>(i)];
    const Token token = tree.tokens[static_cast<std::size_t>(i)];
    if (parent < kRootNode || parent >= i)
      throw input_error(where, "parent of node " + std::to_string(i) + " is " + std::to_string(parent) +
                                   "; -1 (the context) or an earlier node is right");
    if (token < 0 || token >= vocab_size)
      throw input_error(where, "node " + std::to_string(i) + " holds token " + std::to_string(token) + "; ids in [0, " +
                                   std::to_string(vocab_size) + ") are right");
  }
}

}  // namespace draftproof
