// Checks of draft trees before a kernel follows them (twin: validate in reference/verify/draft_tree.hpp).
#pragma once

#include "gpu/kernels/draft_ranges.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Are the offsets of a tree valid, and is every parent the root or an earlier node, so that every walk up ends? By all
// threads of the block, each of which receives it. parents [draft_tokens_total], of all trees.
__device__ inline bool tree_valid(Global<const std::int32_t> parents, const DraftRange& range) {
  bool valid = range.valid;
  for (std::int64_t i = threadIdx.x; range.valid && i < range.length(); i += blockDim.x) {
    const std::int32_t parent = parents[range.begin + i];
    valid = valid && parent >= -1 && parent < i;
  }
  return !block_any(!valid);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
