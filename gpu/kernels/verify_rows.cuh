// Parts that the verifiers of chains share: the drafts of a batch, draws, whole rows read tile by tile, and outputs.
#pragma once

#include <cstdint>

#include "gpu/kernels/draft_ranges.cuh"
#include "gpu/kernels/draw.cuh"
#include "gpu/kernels/residual.cuh"
#include "gpu/kernels/row_source.cuh"
#include "reference/random/address.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Request b has `length(b)` drafts from first(b) on, as many proposal rows from there on, and one target row more. That
// is so where its range is valid; of others these are not asked for.
struct Drafts {
  Global<const Token> tokens;
  Global<const std::int64_t> cu_num_draft_tokens;
  Global<const std::uint64_t> seed;
  Global<const std::uint32_t> step;
  std::int64_t vocab_size;
  std::int64_t tiles;
  DraftShape shape;

  __device__ std::int64_t first(std::int64_t request) const { return cu_num_draft_tokens[request]; }
  __device__ std::int32_t length(std::int64_t request) const {
    const std::int64_t begin = cu_num_draft_tokens[request];
    const std::int64_t end = cu_num_draft_tokens[request + 1];
    return static_cast<std::int32_t>(end - begin);
  }
  __device__ std::int64_t target_row(std::int64_t request) const { return first(request) + request; }
  __device__ bool is_token(Token token) const { return token >= 0 && token < vocab_size; }
  __device__ RandomBlock random(std::int64_t request, std::int32_t row, Purpose purpose) const {
    return random_block(seed[request], {0, static_cast<std::uint32_t>(row), step[request], purpose});
  }
  // Random block for the recovered token at a place, or for the bonus token behind the last draft.
  __device__ RandomBlock random_of_last_token(std::int64_t request, std::int32_t place) const {
    return random(request, place, place == length(request) ? Purpose::target_sample : Purpose::residual);
  }
};

// Are the offsets of a request valid, and its drafts tokens of the vocabulary? Called by a whole warp; every lane
// receives it.
__device__ inline bool drafts_valid(const Drafts& drafts, std::int64_t request) {
  const DraftRange range = draft_range_by_warp(drafts.cu_num_draft_tokens, drafts.shape, request);
  bool valid = range.valid;
  for (std::int64_t i = range.begin + lane_of_thread(); range.valid && i < range.end; i += 32)
    valid = valid && drafts.is_token(drafts.tokens[i]);
  return __all_sync(kAllLanes, valid) != 0;
}

// The rows of a call. kTarget, kProposal: draftproof_distribution_kind. Kernels take it as `const __grid_constant__`,
// since a parameter whose address is taken would be copied to the local memory of each thread otherwise.
template <int kTarget, int kProposal>
struct VerifyRows {
  Drafts drafts;
  RowSource<kTarget> target;
  RowSource<kProposal> proposal;

  // A greedy target sees every proposal as one-hot at the draft, and argmax drafting is one.
  __device__ bool is_one_hot_proposal(std::int64_t request) const {
    if constexpr (kProposal == DRAFTPROOF_ONE_HOT) return true;
    if (is_greedy_target(request)) return true;
    if constexpr (kProposal == DRAFTPROOF_LOGITS)
      return proposal.distribution.temperature != nullptr &&
             static_cast<float>(proposal.distribution.temperature[request]) == 0.0f;
    return false;
  }
  __device__ bool is_greedy_target(std::int64_t request) const {
    if constexpr (kTarget == DRAFTPROOF_LOGITS)
      return target.distribution.temperature != nullptr &&
             static_cast<float>(target.distribution.temperature[request]) == 0.0f;
    return false;
  }
};

// p and q of one draft, and the status of the two rows as far as these show it.
struct DraftChances {
  float p;
  float q;
  std::int32_t status;
};

__device__ inline bool is_probability(float x) {
  return x >= 0.0f && x <= 1.0f;
}

// p and q of draft i of a request, a token of the vocabulary. The target row is read first.
template <int kTarget, int kProposal>
__device__ inline DraftChances chances_of_draft(const VerifyRows<kTarget, kProposal>& rows, std::int64_t request,
                                                std::int32_t i) {
  const std::int64_t proposal_row = rows.drafts.first(request) + i;
  const std::int64_t target_row = proposal_row + request;
  const Token token = rows.drafts.tokens[proposal_row];
  DraftChances out{0.0f, 1.0f, rows.target.status(target_row)};
  if (out.status != DRAFTPROOF_ROW_OK) return out;
  out.p = rows.target.probability(target_row, token);
  if (!is_probability(out.p)) out.status = DRAFTPROOF_ROW_BAD_PROBABILITY;
  if (out.status != DRAFTPROOF_ROW_OK || rows.is_one_hot_proposal(request)) return out;
  if constexpr (kProposal != DRAFTPROOF_ONE_HOT) {
    out.status = rows.proposal.status(proposal_row);
    if (out.status != DRAFTPROOF_ROW_OK) return out;
    out.q = rows.proposal.probability(proposal_row, token);
    if (!is_probability(out.q)) out.status = DRAFTPROOF_ROW_BAD_PROBABILITY;
  }
  return out;
}

// The pair of rows (p, q) that the drafts of a request are judged by at one place: read in chunks, whole. Of a bonus
// row q is 0.
template <int kTarget, int kProposal>
class RowPair {
 public:
  enum class Other { none, draft, row };  // what q is: 0, one-hot at the draft, a proposal row

  __device__ RowPair(const VerifyRows<kTarget, kProposal>& rows, std::int64_t request, std::int32_t place,
                     bool subtracts)
      : rows_(rows), target_row_(rows.drafts.target_row(request) + place), target_(rows.target.open(target_row_)) {
    proposal_row_ = rows.drafts.first(request) + place;
    if (!subtracts) return;
    if (rows.is_one_hot_proposal(request)) {
      other_ = Other::draft;
      draft_ = rows.drafts.tokens[proposal_row_];
      return;
    }
    other_ = Other::row;
    if constexpr (kProposal != DRAFTPROOF_ONE_HOT) proposal_ = rows.proposal.open(proposal_row_);
  }

  // The same place without its proposal.
  __device__ void subtract_nothing() { other_ = Other::none; }

  // p and q of the tokens [column, column + kChunk); 0 where there are none.
  __device__ void load(std::int64_t column, float (&p)[kChunk], float (&q)[kChunk]) const {
    const std::int64_t vocab_size = rows_.drafts.vocab_size;
    const RawChunk raw_target = load_raw(rows_.target.elements(), target_row_, column, vocab_size);
    if constexpr (kProposal != DRAFTPROOF_ONE_HOT) {
      if (other_ == Other::row) {
        const RawChunk raw_proposal = load_raw(rows_.proposal.elements(), proposal_row_, column, vocab_size);
        rows_.proposal.probabilities(proposal_, raw_proposal, column, q);
      }
    }
    if (other_ != Other::row) {
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kChunk; ++e) q[e] = other_ == Other::draft && column + e == draft_ ? 1.0f : 0.0f;
    }
    rows_.target.probabilities(target_, raw_target, column, p);
  }

 private:
  const VerifyRows<kTarget, kProposal>& rows_;
  std::int64_t target_row_;
  std::int64_t proposal_row_;
  Other other_ = Other::none;
  Token draft_ = DRAFTPROOF_NO_TOKEN;
  typename RowSource<kTarget>::Row target_;
  typename RowSource<kProposal>::Row proposal_;
};

// Outputs of a call, per request.
struct VerifyOutputs {
  Global<std::int32_t> num_accepted;
  Global<Token> tokens;    // [requests, draft_len_max + 1]
  Global<float> logprobs;  // the same, or null
  Global<std::int32_t> status;
  std::int64_t draft_len_max;
};

// Writes all outputs of a request: accepted drafts, last_token, padding. By all threads of the block.
template <int kTarget, int kProposal>
__device__ inline void emit(const VerifyOutputs& out, const VerifyRows<kTarget, kProposal>& rows, std::int64_t request,
                            std::int32_t num_accepted, Token last_token) {
  const std::int64_t first = rows.drafts.first(request);
  const std::int64_t places = out.draft_len_max + 1;
  for (std::int64_t i = threadIdx.x; i < places; i += blockDim.x) {
    Token token = DRAFTPROOF_NO_TOKEN;
    if (i < num_accepted) token = rows.drafts.tokens[first + i];
    if (i == num_accepted) token = last_token;
    out.tokens[request * places + i] = token;
    if (out.logprobs == nullptr) continue;
    out.logprobs[request * places + i] =
        token == DRAFTPROOF_NO_TOKEN ? negative_infinity() : rows.target.log_probability(first + request + i, token);
  }
  if (threadIdx.x != 0) return;
  out.num_accepted[request] = num_accepted;
  out.status[request] = DRAFTPROOF_ROW_OK;
}

// The outputs of a request that is refused. Thread `thread` of `threads` writes its part.
__device__ inline void emit_refusal(const VerifyOutputs& out, std::int64_t request, std::int32_t status,
                                    std::uint32_t thread, std::uint32_t threads) {
  const std::int64_t places = out.draft_len_max + 1;
  for (std::int64_t i = thread; i < places; i += threads) {
    out.tokens[request * places + i] = DRAFTPROOF_NO_TOKEN;
    if (out.logprobs != nullptr) out.logprobs[request * places + i] = negative_infinity();
  }
  if (thread != 0) return;
  out.num_accepted[request] = 0;
  out.status[request] = status;
}

// Has every other of the request's `blocks` blocks come here before this one? Every thread gets the answer. What thread
// 0 of each wrote to global memory before can be read then.
__device__ inline bool is_last_block(Global<std::uint32_t> blocks_done, std::int64_t request, std::int64_t blocks) {
  std::uint32_t before = 0;
  if (threadIdx.x == 0) {
    __threadfence();
    before = atomicAdd(&blocks_done[request], 1u);
  }
  before = block_broadcast(threadIdx.x == 0, before);
  __threadfence();
  return before + 1 == static_cast<std::uint32_t>(blocks);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
