// Chain verification by rejection sampling (twin: reference/verify/chain.hpp).
//
//   draft_tokens, target rows [draft_tokens_total + requests, vocab_size], proposal rows [draft_tokens_total,
//   vocab_size]
//   -> num_accepted, tokens, logprobs, status per request
//
// A request is refused by the first thing that is wrong in the order in which the rule looks: an id of its drafts, then
// the target and the proposal row of each draft up to the first rejection, then the whole rows that the last token is
// drawn from. Rows after the first rejection and proposals of greedy requests refuse nothing.
//
// Ladder (bytes that must move: of each request one target row, and where it rejects one proposal row, read once; from
// logits, all rows read once more by the mass pass):
//   v1  (this) judge_drafts: a warp a request, a lane a draft. recover_tokens: a block a tile of the row where the
//       request stopped; the last block of a request to finish draws and writes the outputs, so nothing returns to the
//       host and no row is written. Where only a row's own masses are needed (logits: the bonus row, a one-hot
//       proposal) the mass pass has them, and one tile is read.
//   next: draws overlapped with the tiles of other requests by clusters; the judgement of drafts in the tail of the
//   mass
//       pass.
#pragma once

#include "gpu/kernels/verify_rows.cuh"
#include "reference/verify/convention.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct ChainDecision {
  std::int32_t num_accepted;
  std::int32_t status;
};

// Grid: a warp a request. Also sets blocks_done to 0.
template <int kTarget, int kProposal>
__global__ void judge_drafts(VerifyRows<kTarget, kProposal> rows, std::int64_t requests,
                             Global<ChainDecision> decisions, Global<std::uint32_t> blocks_done) {
  const std::int64_t request = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (request >= requests) return;  // a whole warp
  const auto lane = static_cast<std::int32_t>(lane_of_thread());
  const std::int32_t length = rows.drafts.length(request);
  ChainDecision decision{length, DRAFTPROOF_ROW_OK};
  if (has_bad_draft(rows.drafts, request)) decision.status = DRAFTPROOF_ROW_BAD_ID;
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
  if (lane != 0) return;
  decisions[request] = decision;
  blocks_done[request] = 0;
}

// The sum of RNE(max(p - q, 0) 2^62) over a tile, by all threads of the block; kNoProbability where p or q holds
// anything else.
template <int kTarget, int kProposal>
__device__ inline std::uint64_t residual_of_tile(const RowPair<kTarget, kProposal>& pair, std::int64_t tile) {
  ResidualSum residual;
  bool right = true;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x) * kChunk; i < kTileTokens;
       i += static_cast<std::int32_t>(blockDim.x) * kChunk) {
    float p[kChunk];
    float q[kChunk];
    pair.load(tile * kTileTokens + i, p, q);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kChunk; ++e) {
      right = right && is_probability(p[e]) && is_probability(q[e]);
      residual.add(positive_part_of_difference(p[e], q[e]));
    }
  }
  return block_reduce(right ? residual.sum() : kNoProbability, CappedSum{});
}

// Draws from max(p - q, 0), or from p where that is 0, and writes the outputs. The tiles' sums are known.
template <int kTarget, int kProposal>
__device__ inline void finish_chain(const VerifyRows<kTarget, kProposal>& rows, RowPair<kTarget, kProposal>& pair,
                                    std::int64_t request, std::int32_t num_accepted, const RandomBlock& random,
                                    Global<const std::uint64_t> tile_sum, const VerifyOutputs& out) {
  const std::int64_t tiles = rows.drafts.tiles;
  std::uint64_t sum = 0;
  if (threadIdx.x < tiles) sum = tile_sum[request * tiles + threadIdx.x];
  std::uint64_t total = block_reduce(sum, CappedSum{});
  if (total == 0) {
    if constexpr (kTarget == DRAFTPROOF_LOGITS) {
      const Token token = draw_by_inverse_mass(rows.target.law, rows.drafts.target_row(request) + num_accepted, random);
      emit(out, rows, request, DRAFTPROOF_ROW_OK, num_accepted, token);
      return;
    }
    pair.subtract_nothing();
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::uint64_t sum_of_tile = residual_of_tile(pair, t);
      if (threadIdx.x == t) sum = sum_of_tile;
      total = CappedSum{}(total, sum_of_tile);
    }
  }
  const std::int32_t status = total == 0 ? DRAFTPROOF_ROW_ALL_ZERO : status_of_sum(total);
  Token token = DRAFTPROOF_NO_TOKEN;
  if (status == DRAFTPROOF_ROW_OK) {
    const std::int32_t tile = draw_tile(sum, total, random);
    const std::uint64_t sum_of_tile = block_broadcast(threadIdx.x == static_cast<std::uint32_t>(tile), sum);
    token = draw_in_tile<kChunk>(tile, sum_of_tile, random, [&](std::int64_t column, std::uint64_t(&mass)[kChunk]) {
      float p[kChunk];
      float q[kChunk];
      pair.load(column, p, q);
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e)
        mass[e] = residual_mass(static_cast<double>(positive_part_of_difference(p[e], q[e])));
    });
  }
  emit(out, rows, request, status, num_accepted, token);
}

// Grid: requests * blocks_per_request blocks; a request has one for each tile, or one alone where no request needs more
// than its rows' own masses.
template <int kTarget, int kProposal>
__global__ void recover_tokens(VerifyRows<kTarget, kProposal> rows, Global<const ChainDecision> decisions,
                               std::int64_t blocks_per_request, Global<std::uint64_t> tile_sum,
                               Global<std::uint32_t> blocks_done, VerifyOutputs out) {
  const std::int64_t request = blockIdx.x / blocks_per_request;
  const std::int64_t tile = blockIdx.x % blocks_per_request;
  const ChainDecision decision = decisions[request];
  const std::int32_t place = decision.num_accepted;
  if (decision.status != DRAFTPROOF_ROW_OK) {
    if (tile == 0) emit(out, rows, request, decision.status, 0, DRAFTPROOF_NO_TOKEN);
    return;
  }
  const bool is_bonus = place == rows.drafts.length(request);
  const RandomBlock random = rows.drafts.random(request, place, is_bonus ? Purpose::target_sample : Purpose::residual);
  if constexpr (kTarget == DRAFTPROOF_LOGITS) {
    if (is_bonus || rows.is_one_hot_proposal(request)) {
      if (tile != 0) return;
      Token draft = DRAFTPROOF_NO_TOKEN;
      if (!is_bonus) draft = rows.drafts.tokens[rows.drafts.first(request) + place];
      emit(out, rows, request, DRAFTPROOF_ROW_OK, place,
           draw_by_inverse_mass(rows.target.law, rows.drafts.target_row(request) + place, random, draft));
      return;
    }
  }
  if constexpr (kTarget != DRAFTPROOF_LOGITS || kProposal != DRAFTPROOF_ONE_HOT) {
    RowPair<kTarget, kProposal> pair(rows, request, place, !is_bonus);
    const std::uint64_t sum = residual_of_tile(pair, tile);
    if (threadIdx.x == 0) tile_sum[request * rows.drafts.tiles + tile] = sum;
    if (!is_last_block(blocks_done, request, blocks_per_request)) return;
    finish_chain(rows, pair, request, place, random, tile_sum, out);
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
