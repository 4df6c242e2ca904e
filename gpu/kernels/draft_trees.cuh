// What kernels that follow draft trees must know first.
#pragma once

#include "gpu/kernels/block.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Is every parent the root or an earlier node, so that every walk up ends? By all threads of the block; every thread is
// told. parents [nodes].
__device__ inline bool parents_are_right(Global<const std::int32_t> parents, std::int32_t nodes) {
  bool right = true;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < nodes; i += static_cast<std::int32_t>(blockDim.x)) {
    const std::int32_t parent = parents[i];
    right = right && parent >= -1 && parent < i;
  }
  return !block_any(!right);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
