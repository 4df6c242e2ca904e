// The drafts of requests on the device, whatever their offsets say (twin: reference_executor/draft_ranges.hpp).
//
// Every request looks at the offsets before its own, 8 bytes each from the L2: nothing in batches of hundreds.
#pragma once

#include "gpu/kernels/block.cuh"
#include "gpu/offset_guards.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Thread `thread` of `threads`: the largest bounding offset among its share of those before the request's.
__device__ inline std::int64_t highest_offset(Global<const std::int64_t> cu_num_draft_tokens, const DraftShape& shape,
                                              std::int64_t request, std::uint32_t thread, std::uint32_t threads) {
  std::int64_t highest = 0;
  for (std::int64_t i = 1 + static_cast<std::int64_t>(thread); i < request; i += threads)
    highest = Max{}(highest, bounding_offset(cu_num_draft_tokens[i], shape));
  return highest;
}

// Every lane of the warp, or every thread of the block, receives the range.
__device__ inline DraftRange draft_range_by_warp(Global<const std::int64_t> cu_num_draft_tokens,
                                                 const DraftShape& shape, std::int64_t request) {
  const std::int64_t highest =
      warp_reduce(highest_offset(cu_num_draft_tokens, shape, request, lane_of_thread(), 32), Max{});
  return draft_range(request, highest, cu_num_draft_tokens[request], cu_num_draft_tokens[request + 1], shape);
}
__device__ inline DraftRange draft_range_by_block(Global<const std::int64_t> cu_num_draft_tokens,
                                                  const DraftShape& shape, std::int64_t request) {
  const std::int64_t highest =
      block_reduce(highest_offset(cu_num_draft_tokens, shape, request, threadIdx.x, blockDim.x), Max{});
  return draft_range(request, highest, cu_num_draft_tokens[request], cu_num_draft_tokens[request + 1], shape);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
