// One node of a draft tree: which of its drafted children stands, or the token that is emitted instead (twins:
// reference/verify/sibling_rules/target_only.hpp and rrsw.hpp over dense rows, reference/sampling/dense_draw.hpp). By
// all threads of a block. Nothing of the vocabulary's length is stored: what remains of a mass after some siblings were
// rejected is computed where it is needed.
#pragma once

#include "gpu/kernels/tree_rows.cuh"
#include "reference/verify/convention.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline constexpr int kTilesMax = static_cast<int>(kVocabularyLimit / kTileTokens);

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
  if (threadIdx.x < kTilesMax) of_tile[threadIdx.x] = 0;
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

// One node of the walk: its distributions and its drafted children.
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
    bool valid = true;
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) {
      valid = valid && is_probability(x[e]);
      sum.add(is_probability(x[e]) ? x[e] : 0.0f);
    }
    return valid ? sum.sum() : kNoProbability;
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
  __device__ RandomBlock random_of_last_token() const {
    return random(siblings_.count == 0 ? Purpose::target_sample : Purpose::residual);
  }

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
    return {-1, draw_dense(remaining_, random_of_last_token(), [&](std::int64_t column, double(&masses)[kChunk]) {
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

  // Masses of a chunk that remain after the trials.
  __device__ void load_remaining(const Trials& trials, std::int64_t column, double (&masses)[kChunk]) const {
    float x[kChunk];
    load_target(column, x);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) masses[e] = static_cast<double>(x[e]);
    if (trials.count == 0) return;
    load_proposal(column, x);
    // Unrolled, it would spill registers on sm_100.
    DRAFTPROOF_ROLLED
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
  __device__ Token draw_remaining(const Trials& trials) const {
    return draw_dense(remaining_, random_of_last_token(),
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
      __syncthreads();  // loads of four trials at once, as nvcc makes them, reach past the last one
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
    return {-1, draw_remaining(trials)};
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

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
