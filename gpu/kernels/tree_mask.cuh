// Tree attention: depths and the packed mask of draft trees, from parent arrays (twin:
// reference/verify/tree_attention.hpp, tree_depths and packed_tree_mask). Row 0 of a request is the root's, row
// i + 1 is node i.
//
//   parents [draft_tokens_total] -> depths [rows], mask [rows, words_per_row] u32, status [requests]
//   rows = draft_tokens_total + requests; row r of request b is cu[b] + b + r
//
// Ladder (bytes that must move: 4 a node read; 4 + 4 words_per_row a row written):
//   v1 (this)  a warp a row walks up to the root, each lane keeping the bits of its own word: no barrier, no order
//       among rows, whole words written side by side. Parents of a request are a few cache lines that all its warps
//       share.
//   next: in one launch with the verification that the tree is drafted for.
#pragma once

#include "gpu/kernels/draft_trees.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Grid: requests blocks, which write the rows of their ranges.
__global__ void tree_masks(Global<const std::int64_t> cu_num_draft_tokens, DraftShape shape,
                           Global<const std::int32_t> parents, std::int64_t words_per_row, Global<std::int32_t> depths,
                           Global<std::uint32_t> mask, Global<std::int32_t> status) {
  const std::int64_t request = blockIdx.x;
  const DraftRange range = draft_range_by_block(cu_num_draft_tokens, shape, request);
  const std::int64_t first_row = range.begin + request;
  const Global<const std::int32_t> parent_of = parents + range.begin;
  const bool valid = tree_valid(parents, range);
  if (threadIdx.x == 0) status[request] = valid ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_ID;

  for (std::int64_t row = warp_of_thread(); row <= range.length(); row += warps_of_block()) {
    for (std::int64_t word = lane_of_thread(); word < words_per_row; word += 32) {
      std::uint32_t bits = 0;
      std::int32_t depth = 0;
      if (valid) {
        auto at = static_cast<std::int32_t>(row);
        for (; at > 0; ++depth) {
          if (at / 32 == word) bits |= 1u << at % 32;
          at = parent_of[at - 1] + 1;
        }
        if (word == 0) bits |= 1u;  // the root attends to itself, as do all to it
      }
      mask[(first_row + row) * words_per_row + word] = bits;
      if (word == 0) depths[first_row + row] = depth;
    }
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
