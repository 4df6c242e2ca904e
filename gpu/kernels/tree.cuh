// Tree verification: a block a request walks down from the root, judging the children of each node that it comes to
// (twins: reference/verify/tree.hpp with sibling_rules/target_only.hpp and sibling_rules/rrsw.hpp).
//
//   trees, target rows [rows, V], proposal rows [rows, V] -> tokens, num_accepted, path, logprobs, status
//   rows = draft_tokens_total + requests; row r of request b is cu[b] + b + r: the root's, then those of its nodes
//
// A greedy request is judged by target_only, whose outcome no proposal can change.
//
// Ladder (bytes that must move: V elements of p for each node walked through, and V of q where RRSw judges children):
//   v1 (this)  the masses that remain and those undrafted are functions of p_i, q_i, the rejected siblings and one
//       factor for each, so an element is computed anew where it is needed instead of kept in scratch; a row is read
//       again from the L2. The undrafted total is an integer sum less the masses of the tokens taken out: no pass. One
//       pass a node, one more for each sibling that RRSw rejects.
//   next: a cluster of blocks a request; the first trial, whose factor is 1, inside the first pass.
#pragma once

#include "gpu/kernels/tree_node.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct TreeWalk {
  std::int32_t status;
  std::int32_t num_accepted;
  Token last_token;
};

// The walk of one request; path: the accepted nodes.
template <int kTarget, int kProposal>
__device__ inline TreeWalk walk_tree(const TreeRows<kTarget, kProposal>& rows, const Tree& tree, std::int64_t request,
                                     Shared<std::int32_t> path) {
  DRAFTPROOF_SHARED(std::int32_t, sibling_node, DRAFTPROOF_TREE_NODES_MAX);
  DRAFTPROOF_SHARED(Token, sibling_token, DRAFTPROOF_TREE_NODES_MAX);
  DRAFTPROOF_SHARED(std::uint64_t, masses, kTilesMax);
  DRAFTPROOF_SHARED(std::uint64_t, spare, kTilesMax);
  TreeWalk walk{DRAFTPROOF_ROW_OK, 0, DRAFTPROOF_NO_TOKEN};
  for (std::int32_t at = -1;;) {
    const Siblings siblings = siblings_below(tree, at, sibling_node, sibling_token);
    TreeNode<kTarget, kProposal> node(rows, tree, siblings, request, at + 1, masses, spare);
    const NodeOutcome outcome = node.judge(walk.status);
    __syncthreads();  // all are done with shared memory before the next node writes it
    if (walk.status != DRAFTPROOF_ROW_OK) return walk;
    if (outcome.token != DRAFTPROOF_NO_TOKEN) {
      walk.last_token = outcome.token;
      return walk;
    }
    at = outcome.node;
    if (threadIdx.x == 0) path[walk.num_accepted] = at;
    ++walk.num_accepted;
  }
}

struct TreeOutputs {
  VerifyOutputs verify;
  Global<std::int32_t> path;  // [requests, draft_len_max] or null
};

// Grid: requests blocks of kTilesMax threads or more.
template <int kTarget, int kProposal>
__global__ void __launch_bounds__(512, 1) verify_trees(TreeRows<kTarget, kProposal> rows, TreeOutputs out) {
  DRAFTPROOF_SHARED(std::int32_t, path, DRAFTPROOF_TREE_NODES_MAX);
  const std::int64_t b = blockIdx.x;
  const Tree tree = tree_of(rows.drafts, rows.parents, b);
  TreeWalk walk{DRAFTPROOF_ROW_BAD_ID, 0, DRAFTPROOF_NO_TOKEN};
  if (tree.valid) walk = walk_tree(rows, tree, b, path);
  const bool emits = walk.status == DRAFTPROOF_ROW_OK;
  const std::int32_t num_accepted = emits ? walk.num_accepted : 0;
  if (threadIdx.x == 0) {
    out.verify.status[b] = walk.status;
    out.verify.num_accepted[b] = num_accepted;
  }
  const std::int64_t places = rows.draft_len_max + 1;
  for (std::int64_t i = threadIdx.x; i < places; i += blockDim.x) {
    const std::int32_t node = i < num_accepted ? static_cast<std::int32_t>(path[i]) : -1;
    const bool is_emitted = emits && i <= num_accepted;
    Token token = is_emitted ? walk.last_token : DRAFTPROOF_NO_TOKEN;
    if (node >= 0) token = tree.tokens[node];
    out.verify.tokens[b * places + i] = token;
    if (out.path != nullptr && i < rows.draft_len_max) out.path[b * rows.draft_len_max + i] = node;
    if (out.verify.logprobs == nullptr) continue;
    float logprob = negative_infinity();
    if (is_emitted) {
      const std::int32_t judged_at = i == 0 ? -1 : static_cast<std::int32_t>(path[i - 1]);
      logprob = rows.target.log_probability(tree.first_row + judged_at + 1, token);
    }
    out.verify.logprobs[b * places + i] = logprob;
  }
}

// Rows of trees for the pipeline: the request of each, and the tokens on the path to it, which extend its history:
// [rows, draft_len_max]. Grid: requests blocks, which write the rows of their ranges.
__global__ void lay_out_tree_rows(Drafts drafts, Global<const std::int32_t> parents, Global<std::int32_t> row_request,
                                  Global<Token> row_draft_tokens, Global<std::int64_t> row_draft_begin,
                                  Global<std::int32_t> row_draft_len) {
  const std::int64_t b = blockIdx.x;
  const DraftRange range = draft_range_by_block(drafts.cu_num_draft_tokens, drafts.shape, b);
  const Tree tree = tree_of(drafts, parents, b);
  for (std::int64_t r = threadIdx.x; r <= range.length(); r += blockDim.x) {
    const std::int64_t row = tree.first_row + r;
    const std::int64_t begin = row * drafts.shape.draft_len_max;
    std::int32_t depth = 0;
    if (tree.valid) {
      const auto node = static_cast<std::int32_t>(r) - 1;
      for (std::int32_t at = node; at >= 0; at = tree.parents[at]) ++depth;
      std::int64_t place = begin + depth;
      for (std::int32_t at = node; at >= 0; at = tree.parents[at])
        row_draft_tokens[--place] = static_cast<Token>(tree.tokens[at]);
    }
    row_request[row] = static_cast<std::int32_t>(b);
    row_draft_begin[row] = begin;
    row_draft_len[row] = depth;
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
