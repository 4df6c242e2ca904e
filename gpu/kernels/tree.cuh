// Tree verification: a block a request walks down from the root, judging the children of each node that it comes to
// (twins: reference/verify/tree.hpp with sibling_rules/target_only.hpp and sibling_rules/rrsw.hpp).
//
//   trees, target rows [rows, V], proposal rows [rows, V] -> tokens, num_accepted, path, logprobs, status
//   rows = draft_tokens_total + requests; row r of request b is cu[b] + b + r: the root's, then those of its nodes
//
// A greedy request is judged by target_only, whose outcome no proposal can change.
//
// Ladder (bytes that must move: V elements of p for each node walked through, and V of q where RRSw judges children):
//   v1  the masses that remain and those undrafted as rows in scratch: 16 bytes a token, written and read for every
//       rejected sibling.
//   v2  (this) they are functions of p_i, q_i, the rejected siblings and one factor for each, so an element is computed
//       anew where it is needed; a row is read again from the L2. The undrafted total is an integer sum less the masses
//       of the tokens taken out: no pass. One pass a node, one more for each sibling that RRSw rejects.
//   next: a cluster of blocks a request; the first trial, whose factor is 1, inside the first pass.
#pragma once

#include "gpu/kernels/draft_trees.cuh"
#include "gpu/kernels/verify_rows.cuh"
#include "reference/verify/convention.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline constexpr int kTilesMax = static_cast<int>(kVocabularyLimit / kTileTokens);

// What a call reads. kProposal: DRAFTPROOF_ONE_HOT stands for target_only, which asks for no proposal.
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
  bool is_right;  // what is not may not be followed
};

// By all threads of the block.
__device__ inline Tree tree_of(const Drafts& drafts, Global<const std::int32_t> parents, std::int64_t draft_len_max,
                               std::int64_t request) {
  const std::int64_t begin = drafts.first(request);
  Tree tree{drafts.tokens + begin, parents + begin, drafts.length(request), drafts.target_row(request), true};
  bool right = tree.nodes >= 0 && tree.nodes <= draft_len_max;
  if (!right) tree.nodes = 0;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < tree.nodes;
       i += static_cast<std::int32_t>(blockDim.x))
    right = right && drafts.is_token(tree.tokens[i]);
  right = !block_any(!right);
  tree.is_right = parents_are_right(tree.parents, tree.nodes) && right;
  return tree;
}

// The drafted children of a node, ascending.
struct Siblings {
  std::int32_t count;
  Shared<std::int32_t> node;
  Shared<Token> token;
};

// By all threads of the block.
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

// Integer masses of a row, by tile, and their sum.
struct TileMasses {
  Shared<std::uint64_t> of_tile;  // [kTilesMax]
  std::uint64_t total;
};

// total_of (reference/verify/dense_rows.hpp) from the integer sum.
__device__ inline double total_of_sum(std::uint64_t sum) {
  return static_cast<double>(sum) * 0x1p-62;
}

// Fills of_tile by chunk_sum(column), the sum of the masses of the tokens [column, column + kChunk). By all threads of
// the block.
template <class ChunkSum>
__device__ inline void add_up_tiles(std::int64_t vocab_size, Shared<std::uint64_t> of_tile, ChunkSum chunk_sum) {
  constexpr std::uint32_t kChunksOfTile = kTileTokens / kChunk;
  for (std::uint32_t t = threadIdx.x; t < kTilesMax; t += blockDim.x) of_tile[t] = 0;
  __syncthreads();
  for (std::int64_t begin = 0; begin < vocab_size; begin += kTileTokens) {
    std::uint64_t sum = 0;
    for (std::uint32_t chunk = threadIdx.x; chunk < kChunksOfTile; chunk += blockDim.x)
      if (begin + chunk * kChunk < vocab_size) sum += chunk_sum(begin + chunk * kChunk);
    sum = warp_reduce(sum, Sum{});
    if (lane_of_thread() == 0) atomicAdd(of_tile + begin / kTileTokens, sum);
  }
  __syncthreads();
}

// DenseDraw::draw (reference/sampling/dense_draw.hpp). load(column, masses): the masses of a chunk as doubles.
template <class Load>
__device__ inline Token draw_dense(const TileMasses& masses, const RandomBlock& random, Load load) {
  const std::uint64_t of_tile = threadIdx.x < kTilesMax ? static_cast<std::uint64_t>(masses.of_tile[threadIdx.x]) : 0;
  const std::int32_t tile = draw_tile(of_tile, masses.total, random);
  return draw_in_tile<kChunk>(tile, masses.of_tile[tile], random,
                              [&](std::int64_t column, std::uint64_t(&out)[kChunk]) {
                                double x[kChunk];
                                load(column, x);
                                DRAFTPROOF_UNROLL
                                for (int e = 0; e < kChunk; ++e) out[e] = residual_mass(x[e]);
                              });
}

// Node to descend to, or the recovered or bonus token.
struct NodeOutcome {
  std::int32_t node;
  Token token;  // DRAFTPROOF_NO_TOKEN: descend
};

// The siblings that RRSw has tried and rejected, in order, and the factor that weighed q: 0 where p stayed as it was,
// because nothing would have remained.
struct Trials {
  Shared<Token> token;
  Shared<double> factor;
  std::int32_t count;
};

// One node of the walk: its laws and its drafted children.
template <int kTarget, int kProposal>
class TreeNode {
 public:
  // row: DraftTree::row_after the node. The arrays [kTilesMax] are scratch.
  __device__ TreeNode(const TreeRows<kTarget, kProposal>& rows, const Tree& tree, const Siblings& siblings,
                      std::int64_t request, std::int32_t row, Shared<std::uint64_t> masses, Shared<std::uint64_t> spare)
      : rows_(rows),
        siblings_(siblings),
        request_(request),
        row_(row),
        global_row_(tree.first_row + row),
        p_(rows.target.open(global_row_)),
        remaining_{masses, 0},
        spare_(spare) {}

  // Sets `status`, a draftproof_row_status; the outcome has no meaning where that is not 0.
  __device__ NodeOutcome judge(std::int32_t& status) {
    status = rows_.target.status(global_row_);
    if (status != DRAFTPROOF_ROW_OK) return {};
    if constexpr (kTarget == DRAFTPROOF_LOGITS)
      if (p_.record.greedy_token != DRAFTPROOF_NO_TOKEN) return judge_greedy(p_.record.greedy_token);
    status = survey();
    if (status != DRAFTPROOF_ROW_OK) return {};
    if (siblings_.count == 0) return {-1, draw_remaining({}, Purpose::target_sample)};
    if constexpr (kHasProposal) {
      return judge_rrsw();
    } else {
      return judge_target_only();
    }
  }

 private:
  static constexpr bool kHasProposal = kProposal != DRAFTPROOF_ONE_HOT;

  __device__ void load_target(std::int64_t column, float (&p)[kChunk]) const {
    const RawChunk raw = load_raw(rows_.target.elements(), global_row_, column, rows_.drafts.vocab_size);
    rows_.target.probabilities(p_, raw, column, p);
  }
  __device__ void load_proposal(std::int64_t column, float (&q)[kChunk]) const {
    if constexpr (kHasProposal) {
      const RawChunk raw = load_raw(rows_.proposal.elements(), global_row_, column, rows_.drafts.vocab_size);
      rows_.proposal.probabilities(q_, raw, column, q);
    }
  }

  // The sum of a chunk of probabilities as CappedSum takes it.
  __device__ static std::uint64_t checked_sum(const float (&x)[kChunk]) {
    ResidualSum sum;
    bool right = true;
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) {
      right = right && is_probability(x[e]);
      sum.add(is_probability(x[e]) ? x[e] : 0.0f);
    }
    return right ? sum.sum() : kNoProbability;
  }
  __device__ static std::int32_t status_of_whole(std::uint64_t sum) {
    return sum == 0 ? DRAFTPROOF_ROW_ALL_ZERO : status_of_sum(sum);
  }

  // Sums and checks of the rows that will be asked for, in one pass.
  __device__ std::int32_t survey() {
    const bool reads_proposal = kHasProposal && siblings_.count > 0;
    std::int32_t proposal_status = DRAFTPROOF_ROW_OK;
    if constexpr (kHasProposal) {
      if (reads_proposal) {
        q_ = rows_.proposal.open(global_row_);
        proposal_status = rows_.proposal.status(global_row_);
      }
    }
    std::uint64_t p_sum = 0;
    std::uint64_t q_sum = 0;
    add_up_tiles(rows_.drafts.vocab_size, remaining_.of_tile, [&](std::int64_t column) {
      float x[kChunk];
      load_target(column, x);
      const std::uint64_t sum = checked_sum(x);
      p_sum = CappedSum{}(p_sum, sum);
      if (reads_proposal && proposal_status == DRAFTPROOF_ROW_OK) {
        load_proposal(column, x);
        q_sum = CappedSum{}(q_sum, checked_sum(x));
      }
      return sum;
    });
    remaining_.total = block_reduce(p_sum, CappedSum{});
    const std::int32_t status = status_of_whole(remaining_.total);
    if (status != DRAFTPROOF_ROW_OK || !reads_proposal) return status;
    if (proposal_status != DRAFTPROOF_ROW_OK) return proposal_status;
    undrafted_sum_ = block_reduce(q_sum, CappedSum{});
    return status_of_whole(undrafted_sum_);
  }

  __device__ RandomBlock random(Purpose purpose) const { return rows_.drafts.random(request_, row_, purpose); }

  // A greedy target stands for one token: the first sibling that holds it is accepted.
  __device__ NodeOutcome judge_greedy(Token best) const {
    for (std::int32_t j = 0; j < siblings_.count; ++j)
      if (siblings_.token[j] == best) return {siblings_.node[j], DRAFTPROOF_NO_TOKEN};
    return {-1, best};
  }

  // accept_sibling_target_only.
  __device__ NodeOutcome judge_target_only() {
    DRAFTPROOF_SHARED(std::uint64_t, share, DRAFTPROOF_TREE_NODES_MAX);
    std::uint64_t drafted = 0;
    for (std::int32_t j = static_cast<std::int32_t>(threadIdx.x); j < siblings_.count;
         j += static_cast<std::int32_t>(blockDim.x)) {
      const Token token = siblings_.token[j];
      bool is_first = true;
      for (std::int32_t i = 0; i < j; ++i) is_first = is_first && siblings_.token[i] != token;
      const float p = rows_.target.probability(global_row_, token);
      const std::uint64_t mass = is_first ? residual_mass(static_cast<double>(p)) : 0;
      share[j] = mass;
      drafted += mass;
      if (mass != 0) atomicAdd(remaining_.of_tile + token / kTileTokens, 0 - mass);
    }
    drafted = block_reduce(drafted, Sum{});
    remaining_.total -= drafted;

    // A draw among the siblings and all others together; DenseDraw's tile is the only one.
    const std::uint64_t others = residual_mass(total_of_sum(remaining_.total));
    std::uint64_t left = multiply_high(low_half(random(Purpose::sibling_coin)), drafted + others);
    for (std::int32_t j = 0; j < siblings_.count; ++j) {
      const std::uint64_t mass = share[j];
      if (left < mass) return {siblings_.node[j], DRAFTPROOF_NO_TOKEN};
      left -= mass;
    }
    return {-1, draw_dense(remaining_, random(Purpose::residual), [&](std::int64_t column, double(&masses)[kChunk]) {
              float p[kChunk];
              load_target(column, p);
              DRAFTPROOF_UNROLL
              for (int e = 0; e < kChunk; ++e) masses[e] = static_cast<double>(p[e]);
              for (std::int32_t j = 0; j < siblings_.count; ++j) {
                const std::int64_t taken_out = siblings_.token[j] - column;
                DRAFTPROOF_UNROLL
                for (int e = 0; e < kChunk; ++e) masses[e] = taken_out == e ? 0.0 : masses[e];
              }
            })};
  }

  // What remains of the masses of a chunk after the trials.
  __device__ void load_remaining(const Trials& trials, std::int64_t column, double (&masses)[kChunk]) const {
    float x[kChunk];
    load_target(column, x);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) masses[e] = static_cast<double>(x[e]);
    if (trials.count == 0) return;
    load_proposal(column, x);
    for (std::int32_t t = 0; t < trials.count; ++t) {
      const double factor = trials.factor[t];
      const std::int64_t taken_out = trials.token[t] - column;
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e) {
        masses[e] = positive_part_of_difference(masses[e], static_cast<double>(x[e]) * factor);
        x[e] = taken_out == e ? 0.0f : x[e];
      }
    }
  }
  __device__ Token draw_remaining(const Trials& trials, Purpose purpose) const {
    return draw_dense(remaining_, random(purpose),
                      [&](std::int64_t column, double(&masses)[kChunk]) { load_remaining(trials, column, masses); });
  }

  // p and q of one token after the trials.
  struct Masses {
    double remaining;
    double undrafted;
  };
  __device__ Masses masses_of(Token token, const Trials& trials) const {
    Masses masses{static_cast<double>(rows_.target.probability(global_row_, token)), 0.0};
    if constexpr (kHasProposal) masses.undrafted = static_cast<double>(rows_.proposal.probability(global_row_, token));
    for (std::int32_t t = 0; t < trials.count; ++t) {
      masses.remaining = positive_part_of_difference(masses.remaining, masses.undrafted * trials.factor[t]);
      if (trials.token[t] == token) masses.undrafted = 0.0;
    }
    return masses;
  }

  // accept_sibling_rrsw.
  __device__ NodeOutcome judge_rrsw() {
    DRAFTPROOF_SHARED(Token, trial_token, DRAFTPROOF_TREE_NODES_MAX);
    DRAFTPROOF_SHARED(double, trial_factor, DRAFTPROOF_TREE_NODES_MAX);
    Trials trials{trial_token, trial_factor, 0};
    double total = 1.0;
    double undrafted_total = 1.0;
    for (std::int32_t j = 0; j < siblings_.count && undrafted_total > 0.0; ++j) {
      const Token x = siblings_.token[j];
      const Masses masses = masses_of(x, trials);
      if (!(masses.undrafted > 0.0)) continue;
      const double factor = total / undrafted_total;
      const std::int32_t node = siblings_.node[j];
      if (accepts(Convention::draftproof, masses.remaining, masses.undrafted * factor,
                  rows_.drafts.random(request_, node, Purpose::accept)))
        return {node, DRAFTPROOF_NO_TOKEN};
      if (threadIdx.x == 0) {
        trial_token[trials.count] = x;
        trial_factor[trials.count] = factor;
      }
      ++trials.count;
      undrafted_sum_ -= residual_mass(masses.undrafted);
      undrafted_total = total_of_sum(undrafted_sum_);
      const std::uint64_t sum = add_up_residual(trials);
      if (sum > 0) {
        const Shared<std::uint64_t> replaced = remaining_.of_tile;
        remaining_ = {spare_, sum};
        spare_ = replaced;
        total = total_of_sum(sum);
      } else {
        if (threadIdx.x == 0) trial_factor[trials.count - 1] = 0.0;
        __syncthreads();
      }
    }
    return {-1, draw_remaining(trials, Purpose::residual)};
  }

  // Tile sums of what remains, into spare_; returns their sum.
  __device__ std::uint64_t add_up_residual(const Trials& trials) const {
    std::uint64_t sum = 0;
    add_up_tiles(rows_.drafts.vocab_size, spare_, [&](std::int64_t column) {
      double masses[kChunk];
      load_remaining(trials, column, masses);
      WideResidualSum of_chunk;
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e) of_chunk.add(masses[e]);
      sum += of_chunk.sum();
      return of_chunk.sum();
    });
    return block_reduce(sum, Sum{});
  }

  const TreeRows<kTarget, kProposal>& rows_;
  Siblings siblings_;
  std::int64_t request_;
  std::int32_t row_;
  std::int64_t global_row_;
  typename RowSource<kTarget>::Row p_;
  typename RowSource<kProposal>::Row q_{};
  TileMasses remaining_;  // p, then what RRSw leaves of it
  Shared<std::uint64_t> spare_;
  std::uint64_t undrafted_sum_ = 0;
};

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
  const Tree tree = tree_of(rows.drafts, rows.parents, rows.draft_len_max, b);
  TreeWalk walk{DRAFTPROOF_ROW_BAD_ID, 0, DRAFTPROOF_NO_TOKEN};
  if (tree.is_right) walk = walk_tree(rows, tree, b, path);
  const bool right = walk.status == DRAFTPROOF_ROW_OK;
  const std::int32_t num_accepted = right ? walk.num_accepted : 0;
  if (threadIdx.x == 0) {
    out.verify.status[b] = walk.status;
    out.verify.num_accepted[b] = num_accepted;
  }
  const std::int64_t places = rows.draft_len_max + 1;
  for (std::int64_t i = threadIdx.x; i < places; i += blockDim.x) {
    const std::int32_t node = i < num_accepted ? static_cast<std::int32_t>(path[i]) : -1;
    const bool is_emitted = right && i <= num_accepted;
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

// What the pipeline is told of rows of trees: whose they are, and the tokens on the path to each, which its history
// goes on with: [rows, draft_len_max]. Grid: requests blocks.
__global__ void lay_out_tree_rows(Drafts drafts, Global<const std::int32_t> parents, std::int64_t draft_len_max,
                                  Global<std::int32_t> row_request, Global<Token> row_draft_tokens,
                                  Global<std::int64_t> row_draft_begin, Global<std::int32_t> row_draft_len) {
  const std::int64_t b = blockIdx.x;
  const Tree tree = tree_of(drafts, parents, draft_len_max, b);
  for (std::int32_t r = static_cast<std::int32_t>(threadIdx.x); r <= drafts.length(b);
       r += static_cast<std::int32_t>(blockDim.x)) {
    const std::int64_t row = tree.first_row + r;
    const std::int64_t begin = row * draft_len_max;
    std::int32_t depth = 0;
    if (tree.is_right) {
      for (std::int32_t at = r - 1; at >= 0; at = tree.parents[at]) ++depth;
      std::int64_t place = begin + depth;
      for (std::int32_t at = r - 1; at >= 0; at = tree.parents[at])
        row_draft_tokens[--place] = static_cast<Token>(tree.tokens[at]);
    }
    row_request[row] = static_cast<std::int32_t>(b);
    row_draft_begin[row] = begin;
    row_draft_len[row] = depth;
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
