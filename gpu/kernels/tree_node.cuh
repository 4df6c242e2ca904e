// One node of a draft tree: which of its drafted children stands, or the token that is emitted instead (twins:
// reference/verify/sibling_rules/target_only.hpp and rrsw.hpp over dense rows, reference/sampling/dense_draw.hpp). Sums
// over a row are made a block a tile; one block judges by them. No row is stored: what remains of a mass after some
// siblings were rejected is computed where it is needed.
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

// The siblings that RRSw has tried and rejected, in order, and the factor that weighed q: 0 where p stayed as it was,
// because nothing would have remained.
struct Trials {
  Shared<Token> token;
  Shared<double> factor;
};

// What a pass over the rows of a node adds up: p and q, before anything is judged by them, and what remains.
enum RowSums : std::int32_t { kSumsTarget = 1, kSumsProposal = 2, kSumsRemaining = 4 };

// A walk between two passes.
struct WalkState {
  std::int32_t round;  // the pass that it waits for; of a walk that has ended an earlier one
  std::int32_t sums;   // of RowSums
  std::int32_t node;   // at which it stands; -1: the root
  std::int32_t num_accepted;
  std::int32_t next_sibling;
  std::int32_t trials;
  std::int32_t place;  // of tile_sums: what remains; the sums of the last trial are at 1 - place
  double total;
  std::uint64_t undrafted_sum;
};

// State that the launches of a call pass on.
struct TreeWalks {
  Global<WalkState> states;           // [requests, 2]: of rounds that are even, and odd
  Global<std::uint32_t> blocks_done;  // [requests]
  Global<std::uint64_t> tile_sums;    // [requests, 3, tiles]: two of what remains, q
  Global<std::int32_t> path;          // [requests, draft_len_max], as are:
  Global<Token> trial_tokens;
  Global<double> trial_factors;
};
inline constexpr std::int32_t kProposalSums = 2;

// What a walk does next: descend to a child, emit a last token, wait for RowSums, or refuse with a row's status.
enum class Next : std::uint8_t { descend, emit, sum, refuse };
struct NodeOutcome {
  Next next;
  std::int32_t value;  // node, token, RowSums, draftproof_row_status
};

// One node of the walk: its distributions and its drafted children. The state is changed as the walk goes on.
template <int kTarget, int kProposal>
class TreeNode {
 public:
  __device__ TreeNode(const TreeRows<kTarget, kProposal>& rows, const TreeWalks& walks, std::int64_t request,
                      WalkState& state, const Trials& trials)
      : rows_(rows),
        walks_(walks),
        request_(request),
        state_(state),
        trials_(trials),
        global_row_(rows.drafts.target_row(request) + state.node + 1),
        p_(rows.target.open(global_row_)) {
    if constexpr (kHasProposal) q_ = rows.proposal.open(global_row_);
  }

  // The sums that the walk waits for, of one tile.
  __device__ void sum_tile(std::int64_t tile) const {
    ResidualSum p_sum;
    ResidualSum q_sum;
    WideResidualSum remaining;
    bool p_valid = true;
    bool q_valid = true;
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x) * kChunk; i < kTileTokens;
         i += static_cast<std::int32_t>(blockDim.x) * kChunk) {
      const std::int64_t column = tile * kTileTokens + i;
      float p[kChunk];
      load_target(column, p);
      if ((state_.sums & kSumsTarget) != 0) p_valid = add_checked(p, p_sum) && p_valid;
      if constexpr (kHasProposal) {
        if ((state_.sums & (kSumsProposal | kSumsRemaining)) == 0) continue;
        float q[kChunk];
        load_proposal(column, q);
        if ((state_.sums & kSumsProposal) != 0) q_valid = add_checked(q, q_sum) && q_valid;
        if ((state_.sums & kSumsRemaining) == 0) continue;
        double masses[kChunk];
        weigh(column, p, q, masses);
        DRAFTPROOF_UNROLL
        for (int e = 0; e < kChunk; ++e) remaining.add(masses[e]);
      }
    }
    if ((state_.sums & kSumsTarget) != 0) store_sum(state_.place, tile, p_valid ? p_sum.sum() : kNoProbability);
    if constexpr (kHasProposal) {
      if ((state_.sums & kSumsProposal) != 0) store_sum(kProposalSums, tile, q_valid ? q_sum.sum() : kNoProbability);
      if ((state_.sums & kSumsRemaining) != 0) store_sum(1 - state_.place, tile, remaining.sum());
    }
  }

  // Goes on at the node that the walk has come to, or, where it had, with the sums that it waited for. All threads of
  // one block call it. masses [kTilesMax]: scratch.
  __device__ NodeOutcome judge(bool arrives, const Siblings& siblings, Shared<std::uint64_t> masses) {
    std::int32_t proposal_status = DRAFTPROOF_ROW_OK;
    if constexpr (kHasProposal)
      if (siblings.count > 0) proposal_status = rows_.proposal.status(global_row_);
    if (arrives) {
      const std::int32_t status = rows_.target.status(global_row_);
      if (status != DRAFTPROOF_ROW_OK) return {Next::refuse, status};
      if constexpr (kTarget == DRAFTPROOF_LOGITS)
        if (p_.record.greedy_token != DRAFTPROOF_NO_TOKEN) return judge_greedy(siblings, p_.record.greedy_token);
    } else {
      const std::int32_t status = take_sums(siblings, proposal_status, masses);
      if (status != DRAFTPROOF_ROW_OK) return {Next::refuse, status};
    }
    if constexpr (kHasProposal) {
      const bool tries = siblings.count > 0 && proposal_status == DRAFTPROOF_ROW_OK;
      if (tries) {
        // The first trial's factor is 1 whatever the sums are, and rows of logits cannot fail by theirs.
        constexpr bool kAreSound = kTarget == DRAFTPROOF_LOGITS && kProposal == DRAFTPROOF_LOGITS;
        const NodeOutcome outcome = try_siblings(siblings);
        if (outcome.next == Next::descend && (kAreSound || !arrives)) return outcome;
        if (outcome.next == Next::sum)
          return {Next::sum, arrives ? kSumsTarget | kSumsProposal | kSumsRemaining : kSumsRemaining};
      }
      if (arrives) return {Next::sum, tries ? kSumsTarget | kSumsProposal : kSumsTarget};
      return {Next::emit, draw_remaining(siblings, load_tiles(state_.place, masses))};
    } else {
      if (arrives) return {Next::sum, kSumsTarget};
      return judge_target_only(siblings, load_tiles(state_.place, masses));
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

  // Adds a chunk; are all its elements probabilities?
  __device__ static bool add_checked(const float (&x)[kChunk], ResidualSum& sum) {
    bool valid = true;
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) {
      valid = valid && is_probability(x[e]);
      sum.add(is_probability(x[e]) ? x[e] : 0.0f);
    }
    return valid;
  }
  __device__ std::int64_t sum_at(std::int32_t place, std::int64_t tile) const {
    return (request_ * 3 + place) * rows_.drafts.tiles + tile;
  }
  __device__ void store_sum(std::int32_t place, std::int64_t tile, std::uint64_t sum_of_thread) const {
    const std::uint64_t sum = block_reduce(sum_of_thread, CappedSum{});
    if (threadIdx.x == 0) walks_.tile_sums[sum_at(place, tile)] = sum;
  }
  __device__ TileMasses load_tiles(std::int32_t place, Shared<std::uint64_t> masses) const {
    std::uint64_t sum = 0;
    if (threadIdx.x < rows_.drafts.tiles) sum = walks_.tile_sums[sum_at(place, threadIdx.x)];
    if (threadIdx.x < kTilesMax) masses[threadIdx.x] = sum;
    return {masses, block_reduce(sum, CappedSum{})};
  }
  __device__ static std::int32_t status_of_whole(std::uint64_t sum) {
    return sum == 0 ? DRAFTPROOF_ROW_ALL_ZERO : status_of_sum(sum);
  }

  // The state after a pass; a draftproof_row_status.
  __device__ std::int32_t take_sums(const Siblings& siblings, std::int32_t proposal_status,
                                    Shared<std::uint64_t> masses) {
    if ((state_.sums & kSumsTarget) != 0) {
      std::int32_t status = status_of_whole(load_tiles(state_.place, masses).total);
      if (status != DRAFTPROOF_ROW_OK || !kHasProposal || siblings.count == 0) return status;
      if (proposal_status != DRAFTPROOF_ROW_OK) return proposal_status;
      state_.undrafted_sum = load_tiles(kProposalSums, masses).total;
      status = status_of_whole(state_.undrafted_sum);
      if (status != DRAFTPROOF_ROW_OK) return status;
    }
    if ((state_.sums & kSumsRemaining) == 0) return DRAFTPROOF_ROW_OK;
    const std::int32_t last = state_.trials - 1;
    const Token rejected = trials_.token[last];
    if constexpr (kHasProposal)
      state_.undrafted_sum -= residual_mass(static_cast<double>(rows_.proposal.probability(global_row_, rejected)));
    const std::uint64_t sum = load_tiles(1 - state_.place, masses).total;
    if (sum > 0) {
      state_.place = 1 - state_.place;
      state_.total = total_of_sum(sum);
    } else {
      set_trial(last, rejected, 0.0);
    }
    return DRAFTPROOF_ROW_OK;
  }

  __device__ RandomBlock random(Purpose purpose) const {
    return rows_.drafts.random(request_, state_.node + 1, purpose);
  }
  __device__ RandomBlock random_of_last_token(const Siblings& siblings) const {
    return random(siblings.count == 0 ? Purpose::target_sample : Purpose::residual);
  }

  // A greedy target stands for one token: the first sibling that holds it is accepted.
  __device__ static NodeOutcome judge_greedy(const Siblings& siblings, Token best) {
    for (std::int32_t j = 0; j < siblings.count; ++j)
      if (siblings.token[j] == best) return {Next::descend, siblings.node[j]};
    return {Next::emit, best};
  }

  // accept_sibling_target_only.
  __device__ NodeOutcome judge_target_only(const Siblings& siblings, TileMasses remaining) const {
    DRAFTPROOF_SHARED(std::uint64_t, share, DRAFTPROOF_TREE_NODES_MAX);
    std::uint64_t drafted = 0;
    for (std::int32_t j = static_cast<std::int32_t>(threadIdx.x); j < siblings.count;
         j += static_cast<std::int32_t>(blockDim.x)) {
      const Token token = siblings.token[j];
      bool is_first = true;
      for (std::int32_t i = 0; i < j; ++i) is_first = is_first && siblings.token[i] != token;
      const float p = rows_.target.probability(global_row_, token);
      const std::uint64_t mass = is_first ? residual_mass(static_cast<double>(p)) : 0;
      share[j] = mass;
      drafted += mass;
      if (mass != 0) atomicAdd(remaining.of_tile + token / kTileTokens, 0 - mass);
    }
    drafted = block_reduce(drafted, Sum{});
    remaining.total -= drafted;

    // A draw among the siblings and all others together; DenseDraw's tile is the only one.
    const std::uint64_t others = residual_mass(total_of_sum(remaining.total));
    std::uint64_t left = multiply_high(low_half(random(Purpose::sibling_coin)), drafted + others);
    for (std::int32_t j = 0; j < siblings.count; ++j) {
      const std::uint64_t mass = share[j];
      if (left < mass) return {Next::descend, siblings.node[j]};
      left -= mass;
    }
    return {Next::emit,
            draw_dense(remaining, random_of_last_token(siblings), [&](std::int64_t column, double(&masses)[kChunk]) {
              float p[kChunk];
              load_target(column, p);
              DRAFTPROOF_UNROLL
              for (int e = 0; e < kChunk; ++e) masses[e] = static_cast<double>(p[e]);
              for (std::int32_t j = 0; j < siblings.count; ++j) {
                const std::int64_t taken_out = siblings.token[j] - column;
                DRAFTPROOF_UNROLL
                for (int e = 0; e < kChunk; ++e) masses[e] = taken_out == e ? 0.0 : masses[e];
              }
            })};
  }

  // Masses of a chunk that remain after the trials.
  __device__ void weigh(std::int64_t column, const float (&p)[kChunk], float (&q)[kChunk],
                        double (&masses)[kChunk]) const {
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) masses[e] = static_cast<double>(p[e]);
    // Unrolled, it would spill registers on sm_100.
    DRAFTPROOF_ROLLED
    for (std::int32_t t = 0; t < state_.trials; ++t) {
      const double factor = trials_.factor[t];
      const std::int64_t taken_out = trials_.token[t] - column;
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e) {
        masses[e] = positive_part_of_difference(masses[e], static_cast<double>(q[e]) * factor);
        q[e] = taken_out == e ? 0.0f : q[e];
      }
    }
  }
  __device__ Token draw_remaining(const Siblings& siblings, const TileMasses& remaining) const {
    return draw_dense(remaining, random_of_last_token(siblings), [&](std::int64_t column, double(&masses)[kChunk]) {
      float p[kChunk];
      float q[kChunk] = {};
      load_target(column, p);
      if (state_.trials > 0) load_proposal(column, q);
      weigh(column, p, q, masses);
    });
  }

  // p and q of one token after the first `trials` trials.
  struct Masses {
    double remaining;
    double undrafted;
  };
  __device__ Masses masses_of(Token token, std::int32_t trials) const {
    Masses masses{static_cast<double>(rows_.target.probability(global_row_, token)), 0.0};
    if constexpr (kHasProposal) masses.undrafted = static_cast<double>(rows_.proposal.probability(global_row_, token));
    for (std::int32_t t = 0; t < trials; ++t) {
      masses.remaining = positive_part_of_difference(masses.remaining, masses.undrafted * trials_.factor[t]);
      if (trials_.token[t] == token) masses.undrafted = 0.0;
    }
    return masses;
  }

  __device__ void set_trial(std::int32_t trial, Token token, double factor) const {
    __syncthreads();  // loads of four trials at once, as nvcc makes them, reach past the last one
    if (threadIdx.x == 0) {
      const std::int64_t at = request_ * rows_.draft_len_max + trial;
      trials_.token[trial] = token;
      trials_.factor[trial] = factor;
      walks_.trial_tokens[at] = token;
      walks_.trial_factors[at] = factor;
    }
    __syncthreads();
  }

  // accept_sibling_rrsw up to the next child that is rejected, whose trial is added. Next::emit: none is left.
  __device__ NodeOutcome try_siblings(const Siblings& siblings) {
    const double undrafted_total = state_.trials == 0 ? 1.0 : total_of_sum(state_.undrafted_sum);
    for (std::int32_t j = state_.next_sibling; j < siblings.count && undrafted_total > 0.0; ++j) {
      const Token x = siblings.token[j];
      const Masses masses = masses_of(x, state_.trials);
      if (!(masses.undrafted > 0.0)) continue;
      const double factor = state_.total / undrafted_total;
      const std::int32_t node = siblings.node[j];
      if (accepts(Convention::draftproof, masses.remaining, masses.undrafted * factor,
                  rows_.drafts.random(request_, node, Purpose::accept)))
        return {Next::descend, node};
      set_trial(state_.trials, x, factor);
      ++state_.trials;
      state_.next_sibling = j + 1;
      return {Next::sum, kSumsRemaining};
    }
    return {Next::emit, DRAFTPROOF_NO_TOKEN};
  }

  const TreeRows<kTarget, kProposal>& rows_;
  const TreeWalks& walks_;
  std::int64_t request_;
  WalkState& state_;
  Trials trials_;
  std::int64_t global_row_;
  typename RowSource<kTarget>::Row p_;
  typename RowSource<kProposal>::Row q_{};
};

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
