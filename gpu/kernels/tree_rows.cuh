// The draft trees of a call, their rows, and the children of a node (twin: reference/verify/draft_tree.hpp).
#pragma once

#include "gpu/kernels/draft_trees.cuh"
#include "gpu/kernels/verify_rows.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Inputs of a call. kProposal: DRAFTPROOF_ONE_HOT stands for target_only, which asks for no proposal.
template <int kTarget, int kProposal>
struct TreeRows {
  Drafts drafts;
  Global<const std::int32_t> parents;
  std::int64_t draft_len_max;
  RowSource<kTarget> target;
  RowSource<kProposal> proposal;
};

// The tree of one request.
struct Tree {
  Global<const Token> tokens;          // [nodes]
  Global<const std::int32_t> parents;  // [nodes]
  std::int32_t nodes;
  std::int64_t first_row;
  bool valid;  // what is not may not be followed
};

// All threads of the block call it.
__device__ inline Tree tree_of(const Drafts& drafts, Global<const std::int32_t> parents, std::int64_t request) {
  const DraftRange range = draft_range_by_block(drafts.cu_num_draft_tokens, drafts.shape, request);
  Tree tree{drafts.tokens + range.begin, parents + range.begin, 0, range.begin + request, tree_valid(parents, range)};
  if (range.valid) tree.nodes = static_cast<std::int32_t>(range.length());
  bool valid = tree.valid;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < tree.nodes;
       i += static_cast<std::int32_t>(blockDim.x))
    valid = valid && drafts.is_token(tree.tokens[i]);
  tree.valid = !block_any(!valid);
  return tree;
}

// The same of a tree that is known to be valid.
__device__ inline Tree valid_tree_of(const Drafts& drafts, Global<const std::int32_t> parents, std::int64_t request) {
  const std::int64_t first = drafts.first(request);
  return {drafts.tokens + first, parents + first, drafts.length(request), first + request, true};
}

// The drafted children of a node, ascending.
struct Siblings {
  std::int32_t count;
  Shared<std::int32_t> node;
  Shared<Token> token;
};

// All threads of the block call it.
__device__ inline Siblings siblings_below(const Tree& tree, std::int32_t node, Shared<std::int32_t> nodes,
                                          Shared<Token> tokens) {
  std::uint32_t count = 0;
  for (std::int32_t begin = node + 1; begin < tree.nodes; begin += static_cast<std::int32_t>(blockDim.x)) {
    const std::int32_t i = begin + static_cast<std::int32_t>(threadIdx.x);
    const bool is_child = i < tree.nodes && static_cast<std::int32_t>(tree.parents[i]) == node;
    const Scanned<std::uint32_t> place = block_scan<std::uint32_t>(is_child ? 1 : 0);
    if (is_child) {
      nodes[count + place.before] = i;
      tokens[count + place.before] = static_cast<Token>(tree.tokens[i]);
    }
    count += place.total;
  }
  __syncthreads();
  return {static_cast<std::int32_t>(count), nodes, tokens};
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
