#include "gpu/regress/random_trees.hpp"

#include <algorithm>

#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {

RandomTrees random_trees(std::uint64_t seed, std::span<const std::int64_t> nodes, std::int64_t branching) {
  const Noise noise(seed);
  RandomTrees trees;
  trees.cu_num_draft_tokens.push_back(0);
  for (const std::int64_t size : nodes) {
    // Parents that never fall are those of a breadth-first order: each node takes its parent's place or one after it.
    std::int64_t parent = -1;
    for (std::int64_t i = 0; i < size; ++i) {
      if (noise.below(trees.parents.size(), branching) == 0) ++parent;
      parent = std::min(parent, i - 1);
      trees.parents.push_back(static_cast<std::int32_t>(std::max<std::int64_t>(parent, -1)));
    }
    trees.cu_num_draft_tokens.push_back(static_cast<std::int64_t>(trees.parents.size()));
    trees.draft_len_max = std::max(trees.draft_len_max, size);
  }
  return trees;
}

}  // namespace draftproof::regress
