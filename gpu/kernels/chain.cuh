// Chain verification by rejection sampling (twin: reference/verify/chain.hpp).
//
//   draft_tokens [draft_tokens_total], target rows [draft_tokens_total + requests, V], proposal rows
//   [draft_tokens_total, V] -> num_accepted, tokens, logprobs, status per request
//
// A request is refused by the first fault in the order in which the rule looks: an id of its drafts, then
// the target and the proposal row of each draft up to the first rejection, then the whole rows that the last token is
// drawn from. Rows after the first rejection and proposals of greedy requests refuse nothing.
//
// Ladder (bytes that must move: of each request one target row, and where it rejects one proposal row, read once; from
// logits, all rows read once more by the mass pass):
//   v1 (this)  judge_drafts: a warp a request, a lane a draft. recover_tokens: a block a tile of the row where the
//       request stopped; the last block of a request to finish draws and writes the outputs, so nothing returns to the
//       host and no row is written. Where only a row's own masses are needed (logits: the bonus row, a one-hot
//       proposal) the mass pass has them, and one tile is read.
//   next: target and proposal rows in one mass pass; the judgement of drafts in its tail; dependent launches that
//       overlap the start of a kernel with the end of the one before.
#pragma once

#include "gpu/kernels/verify_rows.cuh"
#include "reference/verify/convention.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct ChainDecision {
  std::int32_t num_accepted;
  std::int32_t status;
};

// Writes the outputs of a request that it refuses, and sets blocks_done to 0. Grid: a warp a request.
template <int kTarget, int kProposal>
__global__ void judge_drafts(const __grid_constant__ VerifyRows<kTarget, kProposal> rows, std::int64_t requests,
                             Global<ChainDecision> decisions, Global<std::uint32_t> blocks_done, VerifyOutputs out) {
  const std::int64_t request = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (request >= requests) return;  // a whole warp
  const auto lane = static_cast<std::int32_t>(lane_of_thread());
  const bool valid = drafts_valid(rows.drafts, request);
  const std::int32_t length = valid ? rows.drafts.length(request) : 0;
  ChainDecision decision{length, valid ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_ID};
  bool stopped = decision.status != DRAFTPROOF_ROW_OK;
  for (std::int32_t begin = 0; begin < length && !stopped; begin += 32) {
    const std::int32_t i = begin + lane;
    DraftChances chances{1.0f, 1.0f, DRAFTPROOF_ROW_OK};
    bool stops = false;
    if (i < length) {
      chances = chances_of_draft(rows, request, i);
      const RandomBlock coin = rows.drafts.random(request, i, Purpose::accept);
      stops = chances.status != DRAFTPROOF_ROW_OK ||
              !accepts(Convention::draftproof, static_cast<double>(chances.p), static_cast<double>(chances.q), coin);
    }
    const unsigned stopping = __ballot_sync(kAllLanes, stops);
    if (stopping == 0) continue;
    stopped = true;
    const std::int32_t first = __ffs(static_cast<int>(stopping)) - 1;
    decision = {begin + first, __shfl_sync(kAllLanes, chances.status, first)};
  }
  if (!stopped) decision.status = rows.target.status(rows.drafts.target_row(request) + length);
  if (decision.status != DRAFTPROOF_ROW_OK) emit_refusal(out, request, decision.status, lane_of_thread(), 32);
  if (lane != 0) return;
  decisions[request] = decision;
  blocks_done[request] = 0;
}

// The sum of RNE(max(p - q, 0) 2^62) over a tile, by all threads of the block; kNoProbability where p or q holds
// anything else.
template <int kTarget, int kProposal>
__device__ inline std::uint64_t residual_of_tile(const RowPair<kTarget, kProposal>& pair, std::int64_t tile) {
  ResidualSum residual;
  bool valid = true;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x) * kChunk; i < kTileTokens;
       i += static_cast<std::int32_t>(blockDim.x) * kChunk) {
    float p[kChunk];
    float q[kChunk];
    pair.load(tile * kTileTokens + i, p, q);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) {
      valid = valid && is_probability(p[e]) && is_probability(q[e]);
      residual.add(positive_part_of_difference(p[e], q[e]));
    }
  }
  return block_reduce(valid ? residual.sum() : kNoProbability, CappedSum{});
}

// A token by the sums of the tiles (each thread has that of its own, the total is not 0), by all threads of the block.
template <int kTarget, int kProposal>
__device__ inline Token draw_from_residual(const RowPair<kTarget, kProposal>& pair, std::uint64_t sum_of_own_tile,
                                           std::uint64_t total, const RandomBlock& random) {
  const std::int32_t tile = draw_tile(sum_of_own_tile, total, random);
  const std::uint64_t sum = block_broadcast(threadIdx.x == static_cast<std::uint32_t>(tile), sum_of_own_tile);
  return draw_in_tile<kChunk>(tile, sum, random, [&](std::int64_t column, std::uint64_t(&mass)[kChunk]) {
    float p[kChunk];
    float q[kChunk];
    pair.load(column, p, q);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e)
      mass[e] = residual_mass(static_cast<double>(positive_part_of_difference(p[e], q[e])));
  });
}

// Draws the last token of each request, from max(p - q, 0) or, where that is 0 or the token is the bonus, from p. Grid:
// requests * blocks_per_request blocks; a request has one for each tile, or one alone where no request needs more than
// its rows' own masses.
template <int kTarget, int kProposal>
__global__ void recover_tokens(const __grid_constant__ VerifyRows<kTarget, kProposal> rows,
                               Global<const ChainDecision> decisions, std::int64_t blocks_per_request,
                               Global<std::uint64_t> tile_sum, Global<std::uint32_t> blocks_done, VerifyOutputs out) {
  constexpr bool kSumsTiles = kTarget != DRAFTPROOF_LOGITS || kProposal != DRAFTPROOF_ONE_HOT;
  const std::int64_t request = blockIdx.x / blocks_per_request;
  const std::int64_t tile = blockIdx.x % blocks_per_request;
  const ChainDecision decision = decisions[request];
  if (decision.status != DRAFTPROOF_ROW_OK) return;
  const std::int32_t place = decision.num_accepted;
  const bool is_bonus = place == rows.drafts.length(request);

  // Rows of logits have masses of their own, which serve where a proposal takes out one token or none.
  bool own_masses = kTarget == DRAFTPROOF_LOGITS && (is_bonus || rows.is_one_hot_proposal(request));
  Token token = DRAFTPROOF_NO_TOKEN;
  if (own_masses) {
    if (tile != 0) return;
    if (!is_bonus) token = rows.drafts.tokens[rows.drafts.first(request) + place];
  } else if constexpr (kSumsTiles) {
    const std::int64_t tiles = rows.drafts.tiles;
    RowPair<kTarget, kProposal> pair(rows, request, place, !is_bonus);
    std::uint64_t sum = residual_of_tile(pair, tile);
    if (threadIdx.x == 0) tile_sum[request * tiles + tile] = sum;
    if (!is_last_block(blocks_done, request, blocks_per_request)) return;
    sum = 0;
    if (threadIdx.x < tiles) sum = tile_sum[request * tiles + threadIdx.x];
    std::uint64_t total = block_reduce(sum, CappedSum{});
    own_masses = kTarget == DRAFTPROOF_LOGITS && total == 0;
    if (!own_masses) {
      if (total == 0) {
        pair.subtract_nothing();
        for (std::int64_t t = 0; t < tiles; ++t) {
          const std::uint64_t sum_of_tile = residual_of_tile(pair, t);
          if (threadIdx.x == t) sum = sum_of_tile;
          total = CappedSum{}(total, sum_of_tile);
        }
      }
      const std::int32_t status = total == 0 ? DRAFTPROOF_ROW_ALL_ZERO : status_of_sum(total);
      if (status != DRAFTPROOF_ROW_OK) return emit_refusal(out, request, status, threadIdx.x, blockDim.x);
      token = draw_from_residual(pair, sum, total, rows.drafts.random_of_last_token(request, place));
    }
  }
  if constexpr (kTarget == DRAFTPROOF_LOGITS) {
    if (own_masses)
      token = draw_by_inverse_mass(rows.target.distribution, rows.drafts.target_row(request) + place,
                                   rows.drafts.random_of_last_token(request, place), token);
  }
  emit(out, rows, request, place, token);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
