// Tree verification: walks down from the root that judge the children of each node that they come to (twins:
// reference/verify/tree.hpp with sibling_rules/target_only.hpp and sibling_rules/rrsw.hpp).
//
//   trees, target rows [rows, V], proposal rows [rows, V] -> tokens, num_accepted, path, logprobs, status
//   rows = draft_tokens_total + requests; row r of request b is cu[b] + b + r: the root's, then those of its nodes
//
// A greedy request is judged by target_only, whose outcome no proposal can change.
//
// Ladder (bytes that must move: V elements of p for each node walked through, and V of q where RRSw judges children):
//   v2 (this)  a launch a round: a block a tile sums what a walk waits for, of p and q and of what remains after the
//       last trial; the last block of a request judges by the sums, until the walk waits for others or ends. Nodes with
//       one rejected child or none take one pass, each further rejected child one more; of logits a node whose first
//       child is accepted takes none. At most draft_len_max + 1 rounds: each is of another node or another rejected
//       child. Launches after the last round return at once.
//   next: rounds in one launch that waits for its blocks; 64 requests of 32 tiles have 2,048 blocks, of which an H200
//       holds 1,056 at once, so that each would take several tiles. Sums of two siblings in one pass.
#pragma once

#include "gpu/kernels/tree_node.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct TreeOutputs {
  VerifyOutputs verify;
  Global<std::int32_t> path;  // [requests, draft_len_max] or null
};

// Writes all outputs of a request whose walk has ended. By all threads of the block.
template <int kTarget, int kProposal>
__device__ inline void emit_walk(const TreeOutputs& out, const TreeRows<kTarget, kProposal>& rows,
                                 const TreeWalks& walks, const Tree& tree, std::int64_t request, std::int32_t accepted,
                                 const NodeOutcome& end) {
  const bool emits = end.next == Next::emit;
  const std::int32_t num_accepted = emits ? accepted : 0;
  if (threadIdx.x == 0) {
    out.verify.status[request] = emits ? DRAFTPROOF_ROW_OK : end.value;
    out.verify.num_accepted[request] = num_accepted;
  }
  const std::int64_t path = request * rows.draft_len_max;
  const std::int64_t places = rows.draft_len_max + 1;
  for (std::int64_t i = threadIdx.x; i < places; i += blockDim.x) {
    const std::int32_t node = i < num_accepted ? static_cast<std::int32_t>(walks.path[path + i]) : -1;
    const bool is_emitted = emits && i <= num_accepted;
    Token token = is_emitted ? end.value : DRAFTPROOF_NO_TOKEN;
    if (node >= 0) token = tree.tokens[node];
    out.verify.tokens[request * places + i] = token;
    if (out.path != nullptr && i < rows.draft_len_max) out.path[path + i] = node;
    if (out.verify.logprobs == nullptr) continue;
    float logprob = negative_infinity();
    if (is_emitted) {
      const std::int32_t judged_at = i == 0 ? -1 : static_cast<std::int32_t>(walks.path[path + i - 1]);
      logprob = rows.target.log_probability(tree.first_row + judged_at + 1, token);
    }
    out.verify.logprobs[request * places + i] = logprob;
  }
}

// The trials of a walk, read by all threads of the block.
__device__ inline Trials trials_of(const TreeWalks& walks, std::int64_t first, std::int32_t count) {
  DRAFTPROOF_SHARED(Token, trial_token, DRAFTPROOF_TREE_NODES_MAX);
  DRAFTPROOF_SHARED(double, trial_factor, DRAFTPROOF_TREE_NODES_MAX);
  for (std::int32_t t = static_cast<std::int32_t>(threadIdx.x); t < count; t += static_cast<std::int32_t>(blockDim.x)) {
    trial_token[t] = static_cast<Token>(walks.trial_tokens[first + t]);
    trial_factor[t] = static_cast<double>(walks.trial_factors[first + t]);
  }
  __syncthreads();
  return {trial_token, trial_factor};
}

__device__ inline WalkState walk_at(std::int32_t node, std::int32_t num_accepted) {
  return {-1, 0, node, num_accepted, 0, 0, 0, 1.0, 0};
}

// Walks on until the sums of another round are needed, or to the end. By all threads of one block.
template <int kTarget, int kProposal>
__device__ inline void walk_on(const TreeRows<kTarget, kProposal>& rows, const TreeWalks& walks, const Tree& tree,
                               std::int64_t request, std::int32_t next_round, WalkState state, const Trials& trials,
                               const TreeOutputs& out) {
  DRAFTPROOF_SHARED(std::int32_t, sibling_node, DRAFTPROOF_TREE_NODES_MAX);
  DRAFTPROOF_SHARED(Token, sibling_token, DRAFTPROOF_TREE_NODES_MAX);
  DRAFTPROOF_SHARED(std::uint64_t, masses, kTilesMax);
  for (bool arrives = next_round == 0;; arrives = true) {
    const Siblings siblings = siblings_below(tree, state.node, sibling_node, sibling_token);
    TreeNode<kTarget, kProposal> node(rows, walks, request, state, trials);
    const NodeOutcome outcome = node.judge(arrives, siblings, masses);
    __syncthreads();  // all are done with shared memory before the next node writes it
    if (outcome.next == Next::sum) {
      state.round = next_round;
      state.sums = outcome.value;
      if (threadIdx.x == 0) walks.states[request * 2 + next_round % 2] = state;
      return;
    }
    if (outcome.next != Next::descend) return emit_walk(out, rows, walks, tree, request, state.num_accepted, outcome);
    if (threadIdx.x == 0) walks.path[request * rows.draft_len_max + state.num_accepted] = outcome.value;
    state = walk_at(outcome.value, state.num_accepted + 1);
  }
}

// Begins the walks. Grid: requests blocks of kTilesMax threads or more.
template <int kTarget, int kProposal>
__global__ void __launch_bounds__(512, 1) begin_walks(const __grid_constant__ TreeRows<kTarget, kProposal> rows,
                                                      const __grid_constant__ TreeWalks walks, TreeOutputs out) {
  const std::int64_t request = blockIdx.x;
  const Tree tree = tree_of(rows.drafts, rows.parents, request);
  const WalkState root = walk_at(-1, 0);
  if (threadIdx.x == 0) {
    walks.states[request * 2] = root;
    walks.states[request * 2 + 1] = root;
    walks.blocks_done[request] = 0;
  }
  if (!tree.valid) return emit_walk(out, rows, walks, tree, request, 0, {Next::refuse, DRAFTPROOF_ROW_BAD_ID});
  walk_on(rows, walks, tree, request, 0, root, trials_of(walks, 0, 0), out);
}

// One round of the walks. Grid: requests * tiles blocks of kTilesMax threads or more; those of walks that have ended do
// nothing.
template <int kTarget, int kProposal>
__global__ void __launch_bounds__(512, 1)
    walk_trees(const __grid_constant__ TreeRows<kTarget, kProposal> rows, const __grid_constant__ TreeWalks walks,
               std::int32_t round, TreeOutputs out) {
  const std::int64_t tiles = rows.drafts.tiles;
  const std::int64_t request = blockIdx.x / tiles;
  WalkState state = walks.states[request * 2 + round % 2];
  if (state.round != round) return;
  const Trials trials = trials_of(walks, request * rows.draft_len_max, state.trials);
  TreeNode<kTarget, kProposal>(rows, walks, request, state, trials).sum_tile(blockIdx.x % tiles);
  if (!is_last_block(walks.blocks_done, request, (round + 1) * tiles)) return;
  walk_on(rows, walks, valid_tree_of(rows.drafts, rows.parents, request), request, round + 1, state, trials, out);
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
