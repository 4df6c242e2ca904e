// The shape of a draft tree before its tokens are known: which node hangs from which. The b-th child of a node in the
// shape is the b-th that will be drawn there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/verify/draft_tree.hpp"

namespace draftproof {

struct TreeShape {
  std::vector<std::int32_t> parents;  // [n], breadth first, parents[i] < i; kRootNode: child of the context

  std::int32_t size() const { return static_cast<std::int32_t>(parents.size()); }
  bool is_chain() const {
    for (std::int32_t i = 0; i < size(); ++i)
      if (parents[static_cast<std::size_t>(i)] != i - 1) return false;
    return true;
  }
};

inline TreeShape chain_shape(std::int32_t length) {
  TreeShape shape;
  for (std::int32_t i = 0; i < length; ++i) shape.parents.push_back(i - 1);
  return shape;
}

// Every node of depth d (the context has depth 0) has branching[d] children.
inline TreeShape branching_shape(std::span<const std::int32_t> branching) {
  TreeShape shape;
  std::int32_t first = kRootNode;  // the nodes of the current depth are first .. last
  std::int32_t last = kRootNode;
  for (const std::int32_t width : branching) {
    const std::int32_t next = shape.size();
    for (std::int32_t parent = first; parent <= last; ++parent)
      shape.parents.insert(shape.parents.end(), static_cast<std::size_t>(width), parent);
    first = next;
    last = shape.size() - 1;
  }
  return shape;
}
inline TreeShape branching_shape(std::initializer_list<std::int32_t> branching) {
  return branching_shape(std::span<const std::int32_t>(branching.begin(), branching.size()));
}

}  // namespace draftproof
