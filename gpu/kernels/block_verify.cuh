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
// Ladder (bytes that must move: all target and proposal rows of drafts, and the bonus rows, read once; from logits once
// more by the mass pass):
//   v1 (this)  weigh_drafts: a warp a request makes the weights p_i. sum_residuals: a block a tile of each target row;
//       the last block of a request to finish throws the coins, draws and writes the outputs. The definition is in
//       double precision; an element costs one multiplication and five additions of doubles and two conversions.
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

// State that the kernels of a call pass on.
struct BlockScratch {
  Global<double> weights;             // [target rows]: p_i in row i of a request, p_0 = 1
  Global<std::int32_t> status;        // [requests]: of ids and of rows of logits
  Global<std::uint32_t> blocks_done;  // [requests]
  Global<std::uint64_t> tile_sum;     // [target rows, tiles]
  Global<std::uint64_t> row_total;    // [target rows]
};

// Makes weights and status, writes the outputs of a request that it refuses, and sets blocks_done to 0. Grid: a warp a
// request.
template <int kTarget, int kProposal>
__global__ void weigh_drafts(const __grid_constant__ VerifyRows<kTarget, kProposal> rows, std::int64_t requests,
                             BlockScratch scratch, VerifyOutputs out) {
  const std::int64_t request = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (request >= requests) return;  // a whole warp
  const auto lane = static_cast<std::int32_t>(lane_of_thread());
  std::int32_t status = DRAFTPROOF_ROW_BAD_ID;
  if (drafts_valid(rows.drafts, request)) {
    const std::int64_t first = rows.drafts.first(request);
    const std::int32_t length = rows.drafts.length(request);
    const bool has_proposal_rows = !rows.is_one_hot_proposal(request);
    status = DRAFTPROOF_ROW_OK;
    double weight = 1.0;
    if (lane == 0) scratch.weights[first + request] = weight;
    for (std::int32_t begin = 0; begin < length; begin += 32) {
      const std::int32_t i = begin + lane;
      DraftChances chances{0.0f, 1.0f, DRAFTPROOF_ROW_OK};
      if (i < length) {
        chances = chances_of_draft(rows, request, i);
        status = Max{}(status, rows.target.status(first + request + i));
        if constexpr (kProposal != DRAFTPROOF_ONE_HOT)
          if (has_proposal_rows) status = Max{}(status, rows.proposal.status(first + i));
      }
      const std::int32_t count = length - begin < 32 ? length - begin : 32;
      for (std::int32_t j = 0; j < count; ++j) {
        const auto p = static_cast<double>(__shfl_sync(kAllLanes, chances.p, j));
        const auto q = static_cast<double>(__shfl_sync(kAllLanes, chances.q, j));
        weight = block_weight(weight, p, q);
        if (lane == j) scratch.weights[first + request + i + 1] = weight;
      }
    }
    status = warp_reduce(status, Max{});
  }
  if (status != DRAFTPROOF_ROW_OK) emit_refusal(out, request, status, lane_of_thread(), 32);
  if (lane != 0) return;
  scratch.status[request] = status;
  scratch.blocks_done[request] = 0;
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

struct BlockDecision {
  std::int32_t num_accepted;
  std::int32_t status;
};

// The coins of a request, whose tile sums are known; every thread gets the decision.
template <int kTarget, int kProposal>
__device__ inline BlockDecision throw_coins(const VerifyRows<kTarget, kProposal>& rows, const BlockScratch& scratch,
                                            std::int64_t request) {
  const std::int64_t first_row = rows.drafts.target_row(request);
  const std::int32_t length = rows.drafts.length(request);
  const std::int64_t tiles = rows.drafts.tiles;
  for (std::int64_t i = warp_of_thread(); i <= length; i += warps_of_block()) {
    std::uint64_t sum = 0;
    for (std::int64_t t = lane_of_thread(); t < tiles; t += 32)
      sum = CappedSum{}(sum, static_cast<std::uint64_t>(scratch.tile_sum[(first_row + i) * tiles + t]));
    sum = warp_reduce(sum, CappedSum{});
    if (lane_of_thread() == 0) scratch.row_total[first_row + i] = sum;
  }
  __syncthreads();
  BlockDecision decision{0, DRAFTPROOF_ROW_OK};
  for (std::int32_t place = static_cast<std::int32_t>(threadIdx.x); place < length;
       place += static_cast<std::int32_t>(blockDim.x)) {
    decision.status = Max{}(decision.status, status_of_sum(scratch.row_total[first_row + place]));
    const std::int32_t i = place + 1;
    const double weight = scratch.weights[first_row + i];
    double acceptance = weight;
    if (i < length) {
      const std::uint64_t total = scratch.row_total[first_row + i];
      acceptance = block_acceptance(static_cast<double>(total) * 0x1p-62, weight);
    }
    const RandomBlock coin = rows.drafts.random(request, place, Purpose::accept);
    if (accepts(Convention::draftproof, acceptance, 1.0, coin)) decision.num_accepted = i;
  }
  decision.num_accepted = block_reduce(decision.num_accepted, Max{});
  decision.status = block_reduce(decision.status, Max{});
  if (decision.status == DRAFTPROOF_ROW_OK && decision.num_accepted == length)
    decision.status = rows.target.status(first_row + length);
  return decision;
}

// Draws the last token of a request and writes its outputs.
template <int kTarget, int kProposal>
__device__ inline void finish_block(const VerifyRows<kTarget, kProposal>& rows, const BlockScratch& scratch,
                                    std::int64_t request, const VerifyOutputs& out) {
  const BlockDecision decision = throw_coins(rows, scratch, request);
  if (decision.status != DRAFTPROOF_ROW_OK) return emit_refusal(out, request, decision.status, threadIdx.x, blockDim.x);
  const std::int32_t place = decision.num_accepted;
  const bool is_bonus = place == rows.drafts.length(request);
  const std::int64_t row = rows.drafts.target_row(request) + place;
  const std::int64_t tiles = rows.drafts.tiles;
  WeightedPair<kTarget, kProposal> pair{{rows, request, place, !is_bonus}, 1.0};
  if (!is_bonus) pair.weight = scratch.weights[row];
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

// Grid: requests * (draft_len_max + 1) * tiles blocks; those of places that a request does not have do nothing.
template <int kTarget, int kProposal>
__global__ void sum_residuals(const __grid_constant__ VerifyRows<kTarget, kProposal> rows, BlockScratch scratch,
                              VerifyOutputs out) {
  const std::int64_t tiles = rows.drafts.tiles;
  const std::int64_t tile = blockIdx.x % tiles;
  const std::int64_t row_of_grid = blockIdx.x / tiles;
  const std::int64_t request = row_of_grid / (out.draft_len_max + 1);
  const auto place = static_cast<std::int32_t>(row_of_grid % (out.draft_len_max + 1));
  const std::int32_t status = scratch.status[request];
  if (status != DRAFTPROOF_ROW_OK) return;
  const std::int32_t length = rows.drafts.length(request);
  if (place > length) return;
  const bool is_bonus = place == length;
  const std::int64_t row = rows.drafts.target_row(request) + place;
  WeightedPair<kTarget, kProposal> pair{{rows, request, place, !is_bonus}, 1.0};
  if (!is_bonus) pair.weight = scratch.weights[row];
  const std::uint64_t sum = pair.sum_of_tile(tile);
  if (threadIdx.x == 0) scratch.tile_sum[row * tiles + tile] = sum;
  if (!is_last_block(scratch.blocks_done, request, (length + 1) * tiles)) return;
  finish_block(rows, scratch, request, out);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
