// EAGLE-2's dynamic draft tree: Li, Wei, Zhang, Zhang 2406.16858, section 4. Expand layer by layer, then rerank all
// that was scored.
//
//   layer 1         the top_k best continuations of the context
//   each expansion  every node of the frontier proposes its top_k; all of these stay in the pool; the next frontier is
//                   the top_k best of them
//   rerank          the best num_nodes of the pool, top_k + depth top_k^2 nodes at most
#pragma once

#include "engine/draft/tree_builders/candidates.hpp"

namespace draftproof {

struct Eagle2Options {
  std::int32_t top_k = 10;
  std::int32_t depth = 7;       // expansions after the first layer: the deepest nodes lie depth + 1 below the context
  std::int32_t num_nodes = 59;  // drafts; with the root's own token this is one less than the usual "60 total tokens"
};

// At most num_nodes drafts, fewer where the pool holds fewer. Errors (usage): top_k < 1, depth < 0, num_nodes < 1;
// (input) what CandidatePool::expand says.
ValuedTree eagle2_tree(const Eagle2Options& options, const DraftCandidates& draft);

}  // namespace draftproof
