// Draft trees of several requests, flattened as calls take them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace draftproof::regress {

struct RandomTrees {
  std::vector<std::int64_t> cu_num_draft_tokens;  // [requests + 1]; a case may make them invalid
  std::vector<std::int32_t> parents;              // in breadth-first order
  std::int64_t draft_len_max = 0;

  std::int64_t requests() const { return static_cast<std::int64_t>(cu_num_draft_tokens.size()) - 1; }
  std::int64_t draft_tokens() const { return static_cast<std::int64_t>(parents.size()); }
  std::int64_t rows() const { return draft_tokens() + requests(); }
};

// A tree of nodes[b] nodes for each request b. branching: 1 makes chains; the larger, the wider and flatter.
RandomTrees random_trees(std::uint64_t seed, std::span<const std::int64_t> nodes, std::int64_t branching);

}  // namespace draftproof::regress
