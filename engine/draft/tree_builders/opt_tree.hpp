// OPT-Tree: Wang et al. 2406.17276. The draft tree of n nodes with the largest sum of path probabilities, which is the
// expected number of accepted drafts where the draft's probabilities are those of acceptance.
//
// Values never rise along a path, so the best n nodes of all are closed under ancestors, and no such tree is better.
// Of a layer only its best n nodes can be among them, or have descendants that are: so layers are cut to n, and the
// search ends at the first layer that adds nothing.
#pragma once

#include "engine/draft/tree_builders/candidates.hpp"

namespace draftproof {

struct OptTreeOptions {
  std::int32_t num_nodes = 50;
  std::int32_t depth_max = 10;
  double threshold = 0.0;  // stop when one more layer raises the sum by this or less; 0 gives the optimum
};

// Errors (usage): num_nodes < 1, depth_max < 1, a threshold that is negative or not finite; (input) what
// CandidatePool::expand says.
ValuedTree opt_tree(const OptTreeOptions& options, const DraftCandidates& draft);

}  // namespace draftproof
