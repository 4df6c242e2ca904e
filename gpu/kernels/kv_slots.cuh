// KV slot commit: what was accepted moves to the request's first slots, the rest is freed (twin:
// reference/verify/kv_slots.hpp).
//
//   slots [rows], num_accepted [requests], path [requests, draft_len_max] -> cache in place, kv_len, freed_slots,
//   status rows = draft_tokens_total + requests; row r of request b is cu[b] + b + r
//
// Ladder (bytes that must move: twice slot_bytes a layer for every accepted node that is not its own place; of a chain
// nothing but the bookkeeping):
//   v1 (this)  a thread owns a column of 16 bytes of one layer and moves it along the path in order. Targets and
//       sources overlap, but a target lies before every source that is still to be read: no scratch, and four loads in
//       flight.
//   next: layers in one launch with what else the engine moves after a step.
#pragma once

#include "gpu/kernels/draft_ranges.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct CommitRequest {
  Global<const std::int64_t> slots;  // [nodes + 1]
  Global<const std::int32_t> path;   // [draft_len_max]; null: a chain
  std::int32_t nodes;
  std::int32_t num_accepted;
};

// The commit of a request whose drafts are [first, end).
__device__ inline CommitRequest commit_request(std::int64_t request, std::int64_t first, std::int64_t end,
                                               Global<const std::int32_t> num_accepted, Global<const std::int32_t> path,
                                               std::int64_t draft_len_max, Global<const std::int64_t> slots) {
  CommitRequest out;
  out.slots = slots + (first + request);
  out.path = path;
  if (path != nullptr) out.path = path + request * draft_len_max;
  out.nodes = static_cast<std::int32_t>(end - first);
  out.num_accepted = num_accepted[request];
  return out;
}

// Is the commit of a request with valid offsets valid? All threads of the block call it and get the answer.
__device__ inline bool commit_valid(const CommitRequest& request, std::int64_t draft_len_max, std::int64_t num_slots) {
  bool valid = request.num_accepted >= 0 && request.num_accepted <= request.nodes;
  const auto threads = static_cast<std::int32_t>(blockDim.x);
  for (std::int32_t r = static_cast<std::int32_t>(threadIdx.x); r <= request.nodes; r += threads) {
    const std::int64_t slot = request.slots[r];
    valid = valid && is_index(slot, num_slots);
    for (std::int32_t earlier = 0; earlier < r; ++earlier) valid = valid && request.slots[earlier] != slot;
  }
  if (request.path != nullptr) {
    for (std::int32_t k = static_cast<std::int32_t>(threadIdx.x); k < draft_len_max; k += threads) {
      const std::int32_t node = request.path[k];
      if (k < request.num_accepted) {
        const std::int32_t before = k == 0 ? -1 : static_cast<std::int32_t>(request.path[k - 1]);
        valid = valid && node > before && node < request.nodes;
      } else {
        valid = valid && node == -1;
      }
    }
  }
  return !block_any(!valid);
}

// The bookkeeping. Grid: requests blocks, which write the rows of their ranges.
__global__ void commit_slots(Global<const std::int64_t> cu_num_draft_tokens, DraftShape shape,
                             Global<const std::int32_t> num_accepted, Global<const std::int32_t> path,
                             Global<const std::int64_t> slots, std::int64_t num_slots, Global<std::int64_t> kv_len,
                             Global<std::int64_t> freed_slots, Global<std::int32_t> status) {
  const std::int64_t b = blockIdx.x;
  const DraftRange range = draft_range_by_block(cu_num_draft_tokens, shape, b);
  const CommitRequest request =
      commit_request(b, range.begin, range.end, num_accepted, path, shape.draft_len_max, slots);
  const bool valid = range.valid && kv_len_valid(kv_len[b]) &&
                     commit_valid(request, shape.draft_len_max, num_slots);  // the same in all threads
  const Global<std::int64_t> freed = freed_slots + (range.begin + b);
  for (std::int64_t r = threadIdx.x; r <= range.length(); r += blockDim.x)
    freed[r] = valid && r > request.num_accepted ? static_cast<std::int64_t>(request.slots[r]) : -1;
  if (threadIdx.x != 0) return;
  status[b] = valid ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_ID;
  if (valid) kv_len[b] += request.num_accepted + 1;
}

// The entries of a tree's path, in units of Word; strides and slot_words count them. Grid: requests * layers *
// column_blocks blocks.
template <class Word>
__global__ void move_entries(Global<const std::int64_t> cu_num_draft_tokens, Global<const std::int32_t> num_accepted,
                             Global<const std::int32_t> path, std::int64_t draft_len_max,
                             Global<const std::int64_t> slots, Global<const std::int32_t> status, Global<Word> cache,
                             std::int64_t layers, std::int64_t column_blocks, std::int64_t layer_stride,
                             std::int64_t slot_stride, std::int64_t slot_words) {
  const std::int64_t column = blockIdx.x % column_blocks * blockDim.x + threadIdx.x;
  const std::int64_t layer = blockIdx.x / column_blocks % layers;
  const std::int64_t b = blockIdx.x / column_blocks / layers;
  if (status[b] != DRAFTPROOF_ROW_OK || column >= slot_words) return;
  const CommitRequest request =
      commit_request(b, cu_num_draft_tokens[b], cu_num_draft_tokens[b + 1], num_accepted, path, draft_len_max, slots);
  const Global<Word> words = cache + (layer * layer_stride + column);

  constexpr int kInFlight = 4;
  for (std::int32_t k = 0; k < request.num_accepted; k += kInFlight) {
    Word moved[kInFlight];
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kInFlight; ++i) {
      if (k + i >= request.num_accepted) continue;
      const std::int32_t row = request.path[k + i] + 1;
      moved[i] = words[request.slots[row] * slot_stride];
    }
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kInFlight; ++i) {
      if (k + i >= request.num_accepted) continue;
      words[request.slots[k + i + 1] * slot_stride] = moved[i];
    }
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
