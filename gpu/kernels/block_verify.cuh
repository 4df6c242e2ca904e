// Block verification (twin: reference/verify/block.hpp over rows of doubles).
//
//   draft_tokens [draft_tokens_total], target rows [draft_tokens_total + requests, V], proposal rows
//   [draft_tokens_total, V] -> num_accepted, tokens, logprobs, status per request
//
// Every coin is thrown, so all rows of all drafts are looked at, whole; the bonus row is where it is drawn from. A
// request is refused by the first of these that finds something, and by the worst that it finds: the ids of its drafts;
// the distributions of its rows of logits; the elements and sums of rows of probabilities and of residuals; what is
// drawn from.
//
// Ladder (bytes that must move: from logits all rows once by the mass pass, then pairs whose sum decides; of rows of
// probabilities all, which are checked):
//   v2 (this)  weigh_drafts: a warp a request makes the weights p_i and says which sums S_i its coins ask for. A coin
//       beyond p_i fails and p_i = 1 passes whatever S_i is, and nothing before a draft that passes for certain
//       matters: of logits 0.1 to 0.7 rows a request are left at K = 5, and one is drawn from, where all six took
//       439 us (H200, 64 requests, 128,256 bf16). sum_residuals: a block a tile of each such row, both rows in one
//       pass; the last block throws the coins. draw_last_tokens: a block a tile of the row that is drawn from, where it
//       has no sums yet. The definition is in double precision; an element costs one multiplication and five additions
//       of doubles and two conversions.
//   next: the mass pass of logits could leave its exponentials where the residuals are summed, which saves one of the
//       two reads.
#pragma once

#include "gpu/kernels/verify_rows.cuh"
#include "reference/verify/convention.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// p_i from p_{i-1} and the probabilities of x_i.
__device__ inline double block_weight(double weight, double p, double q) {
  const double mass = weight * p;
  if (!(mass > 0.0)) return 0.0;
  return mass >= q ? 1.0 : mass / q;
}

// h_i, i < K, from S_i and p_i. 0/0 accepts for certain.
__device__ inline double block_acceptance(double residual_total, double weight) {
  const double total = residual_total + (1.0 - weight);
  return total > 0.0 ? residual_total / total : 1.0;
}

struct BlockDecision {
  std::int32_t num_accepted;
  std::int32_t status;
};

// State that the kernels of a call pass on. Row i of a request is of S_i and p_i, p_0 = 1.
struct BlockScratch {
  Global<double> weights;              // [target rows]
  Global<std::int32_t> is_summed;      // [target rows]: 1 where S_i is asked for
  Global<std::int32_t> rows_summed;    // [requests]: how many
  Global<BlockDecision> decisions;     // [requests]: where nothing is summed, or once all is
  Global<std::uint32_t> blocks_done;   // [requests], of sum_residuals
  Global<std::uint32_t> drawers_done;  // [requests], of draw_last_tokens
  Global<std::uint64_t> tile_sum;      // [target rows, tiles]
  Global<std::uint64_t> row_total;     // [target rows]
};

// Do rows hold probabilities whatever is in the data? Others are looked at, whole.
template <int kTarget, int kProposal>
inline constexpr bool kAreProbabilities = kTarget == DRAFTPROOF_LOGITS&& kProposal != DRAFTPROOF_PROBABILITIES;

// Can coin i say both yes and no, by S_i? h_i is at most S_i <= p_i, but for the rounding of rows of logits.
__device__ inline bool is_open(double weight, const RandomBlock& coin) {
  constexpr double kRoom = 1.0 + 0x1p-10;
  return weight > 0.0 && weight < 1.0 && uniform_53(high_half(coin)) <= weight * kRoom;
}

// Makes the state, and writes the outputs of a request that it refuses. Grid: a warp a request.
template <int kTarget, int kProposal>
__global__ void weigh_drafts(const __grid_constant__ VerifyRows<kTarget, kProposal> rows, std::int64_t requests,
                             BlockScratch scratch, VerifyOutputs out) {
  const std::int64_t request = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (request >= requests) return;  // a whole warp
  const auto lane = static_cast<std::int32_t>(lane_of_thread());
  BlockDecision decision{0, DRAFTPROOF_ROW_BAD_ID};
  std::int32_t summed = 0;
  if (drafts_valid(rows.drafts, request)) {
    const std::int64_t first = rows.drafts.first(request);
    const std::int64_t first_row = first + request;
    const std::int32_t length = rows.drafts.length(request);
    const bool has_proposal_rows = !rows.is_one_hot_proposal(request);
    decision.status = DRAFTPROOF_ROW_OK;
    double weight = 1.0;
    if (lane == 0) scratch.weights[first_row] = weight;
    for (std::int32_t begin = 0; begin < length; begin += 32) {
      const std::int32_t i = begin + lane;
      DraftChances chances{0.0f, 1.0f, DRAFTPROOF_ROW_OK};
      if (i < length) {
        chances = chances_of_draft(rows, request, i);
        decision.status = Max{}(decision.status, rows.target.status(first_row + i));
        if constexpr (kProposal != DRAFTPROOF_ONE_HOT)
          if (has_proposal_rows) decision.status = Max{}(decision.status, rows.proposal.status(first + i));
      }
      const std::int32_t count = length - begin < 32 ? length - begin : 32;
      double own = 0.0;
      for (std::int32_t j = 0; j < count; ++j) {
        const auto p = static_cast<double>(__shfl_sync(kAllLanes, chances.p, j));
        const auto q = static_cast<double>(__shfl_sync(kAllLanes, chances.q, j));
        weight = block_weight(weight, p, q);
        own = lane == j ? weight : own;
      }
      if (i >= length) continue;
      scratch.weights[first_row + i + 1] = own;
      // h_K = p_K, and h_i = 1 where p_i is.
      const bool passes =
          i + 1 < length ? own >= 1.0
                         : accepts(Convention::draftproof, own, 1.0, rows.drafts.random(request, i, Purpose::accept));
      if (passes) decision.num_accepted = i + 1;
    }
    decision.status = warp_reduce(decision.status, Max{});
    decision.num_accepted = warp_reduce(decision.num_accepted, Max{});
    __syncwarp();
    for (std::int32_t i = lane; i < length; i += 32) {
      bool asks = true;
      if constexpr (kAreProbabilities<kTarget, kProposal>)
        asks = i > decision.num_accepted &&
               is_open(scratch.weights[first_row + i], rows.drafts.random(request, i - 1, Purpose::accept));
      scratch.is_summed[first_row + i] = asks ? 1 : 0;
      summed += asks ? 1 : 0;
    }
    summed = warp_reduce(summed, Sum{});
    if (decision.status == DRAFTPROOF_ROW_OK && summed == 0 && decision.num_accepted == length)
      decision.status = rows.target.status(first_row + length);
  }
  if (decision.status != DRAFTPROOF_ROW_OK) emit_refusal(out, request, decision.status, lane_of_thread(), 32);
  if (lane != 0) return;
  scratch.decisions[request] = decision;
  scratch.rows_summed[request] = decision.status == DRAFTPROOF_ROW_OK ? summed : 0;
  scratch.blocks_done[request] = 0;
  scratch.drawers_done[request] = 0;
}

// One row of residual masses max(w p - q, 0), in double.
template <int kTarget, int kProposal>
struct WeightedPair {
  RowPair<kTarget, kProposal> rows;
  double weight;

  // Loads the tokens [column, column + kChunk). Returns whether all are probabilities.
  __device__ bool load(std::int64_t column, double (&x)[kChunk]) const {
    float p[kChunk];
    float q[kChunk];
    rows.load(column, p, q);
    bool valid = true;
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) {
      valid = valid && is_probability(p[e]) && is_probability(q[e]);
      x[e] = positive_part_of_difference(static_cast<double>(p[e]) * weight, static_cast<double>(q[e]));
    }
    return valid;
  }

  // The sum of RNE(x 2^62) over a tile, by all threads of the block.
  __device__ std::uint64_t sum_of_tile(std::int64_t tile) const {
    WideResidualSum residual;
    bool valid = true;
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x) * kChunk; i < kTileTokens;
         i += static_cast<std::int32_t>(blockDim.x) * kChunk) {
      double x[kChunk];
      valid = load(tile * kTileTokens + i, x) && valid;
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e) residual.add(x[e]);
    }
    return block_reduce(valid ? residual.sum() : kNoProbability, CappedSum{});
  }
};

// The coins of a request, whose tile sums are known; every thread gets the decision. `certain`: that of weigh_drafts.
template <int kTarget, int kProposal>
__device__ inline BlockDecision throw_coins(const VerifyRows<kTarget, kProposal>& rows, const BlockScratch& scratch,
                                            std::int64_t request, BlockDecision certain) {
  const std::int64_t first_row = rows.drafts.target_row(request);
  const std::int32_t length = rows.drafts.length(request);
  const std::int64_t tiles = rows.drafts.tiles;
  for (std::int64_t i = warp_of_thread(); i < length; i += warps_of_block()) {
    if (scratch.is_summed[first_row + i] == 0) continue;
    std::uint64_t sum = 0;
    for (std::int64_t t = lane_of_thread(); t < tiles; t += 32)
      sum = CappedSum{}(sum, static_cast<std::uint64_t>(scratch.tile_sum[(first_row + i) * tiles + t]));
    sum = warp_reduce(sum, CappedSum{});
    if (lane_of_thread() == 0) scratch.row_total[first_row + i] = sum;
  }
  __syncthreads();
  BlockDecision decision = certain;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < length;
       i += static_cast<std::int32_t>(blockDim.x)) {
    if (scratch.is_summed[first_row + i] == 0) continue;
    const std::uint64_t total = scratch.row_total[first_row + i];
    decision.status = Max{}(decision.status, status_of_sum(total));
    if (i == 0) continue;
    const double acceptance = block_acceptance(static_cast<double>(total) * 0x1p-62, scratch.weights[first_row + i]);
    const RandomBlock coin = rows.drafts.random(request, i - 1, Purpose::accept);
    if (accepts(Convention::draftproof, acceptance, 1.0, coin)) decision.num_accepted = Max{}(decision.num_accepted, i);
  }
  decision.num_accepted = block_reduce(decision.num_accepted, Max{});
  decision.status = block_reduce(decision.status, Max{});
  if (decision.status == DRAFTPROOF_ROW_OK && decision.num_accepted == length)
    decision.status = rows.target.status(first_row + length);
  return decision;
}

// Grid: requests * draft_len_max * tiles blocks; those of rows whose sum is not asked for do nothing.
template <int kTarget, int kProposal>
__global__ void sum_residuals(const __grid_constant__ VerifyRows<kTarget, kProposal> rows, BlockScratch scratch,
                              VerifyOutputs out) {
  const std::int64_t tiles = rows.drafts.tiles;
  const std::int64_t tile = blockIdx.x % tiles;
  const std::int64_t row_of_grid = blockIdx.x / tiles;
  const std::int64_t request = row_of_grid / out.draft_len_max;
  const auto place = static_cast<std::int32_t>(row_of_grid % out.draft_len_max);
  const std::int32_t rows_summed = scratch.rows_summed[request];
  if (rows_summed == 0 || place >= rows.drafts.length(request)) return;
  const std::int64_t row = rows.drafts.target_row(request) + place;
  if (scratch.is_summed[row] == 0) return;
  const WeightedPair<kTarget, kProposal> pair{{rows, request, place, true}, scratch.weights[row]};
  const std::uint64_t sum = pair.sum_of_tile(tile);
  if (threadIdx.x == 0) scratch.tile_sum[row * tiles + tile] = sum;
  if (!is_last_block(scratch.blocks_done, request, rows_summed * tiles)) return;
  const BlockDecision decision = throw_coins(rows, scratch, request, scratch.decisions[request]);
  if (decision.status != DRAFTPROOF_ROW_OK) emit_refusal(out, request, decision.status, threadIdx.x, blockDim.x);
  __syncthreads();  // all have read the decision before
  if (threadIdx.x == 0) scratch.decisions[request] = decision;
}

// Draws the last token of each request and writes its outputs. Grid: requests * tiles blocks; of a row whose tiles are
// summed one goes on.
template <int kTarget, int kProposal>
__global__ void draw_last_tokens(const __grid_constant__ VerifyRows<kTarget, kProposal> rows, BlockScratch scratch,
                                 VerifyOutputs out) {
  const std::int64_t tiles = rows.drafts.tiles;
  const std::int64_t request = blockIdx.x / tiles;
  const std::int64_t own_tile = blockIdx.x % tiles;
  const BlockDecision decision = scratch.decisions[request];
  if (decision.status != DRAFTPROOF_ROW_OK) return;
  const std::int32_t place = decision.num_accepted;
  const bool is_bonus = place == rows.drafts.length(request);
  const std::int64_t row = rows.drafts.target_row(request) + place;
  WeightedPair<kTarget, kProposal> pair{{rows, request, place, !is_bonus}, 1.0};
  if (!is_bonus) pair.weight = scratch.weights[row];
  if (!is_bonus && scratch.is_summed[row] != 0) {
    if (own_tile != 0) return;
  } else {
    const std::uint64_t sum_of_tile = pair.sum_of_tile(own_tile);
    if (threadIdx.x == 0) scratch.tile_sum[row * tiles + own_tile] = sum_of_tile;
    if (!is_last_block(scratch.drawers_done, request, tiles)) return;
  }
  std::uint64_t sum = 0;
  if (threadIdx.x < tiles) sum = scratch.tile_sum[row * tiles + threadIdx.x];
  std::uint64_t total = block_reduce(sum, CappedSum{});
  if (total == 0 && !is_bonus) {
    pair.rows.subtract_nothing();
    pair.weight = 1.0;
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::uint64_t sum_of_tile = pair.sum_of_tile(t);
      if (threadIdx.x == t) sum = sum_of_tile;
      total = CappedSum{}(total, sum_of_tile);
    }
  }
  const std::int32_t status = total == 0 ? DRAFTPROOF_ROW_ALL_ZERO : status_of_sum(total);
  if (status != DRAFTPROOF_ROW_OK) return emit_refusal(out, request, status, threadIdx.x, blockDim.x);
  const RandomBlock random = rows.drafts.random_of_last_token(request, place);
  const std::int32_t tile = draw_tile(sum, total, random);
  const std::uint64_t sum_of_tile = block_broadcast(threadIdx.x == static_cast<std::uint32_t>(tile), sum);
  const Token token =
      draw_in_tile<kChunk>(tile, sum_of_tile, random, [&](std::int64_t column, std::uint64_t(&mass)[kChunk]) {
        double x[kChunk];
        pair.load(column, x);
        DRAFTPROOF_UNROLL
        for (int e = 0; e < kChunk; ++e) mass[e] = residual_mass(x[e]);
      });
  emit(out, rows, request, place, token);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
