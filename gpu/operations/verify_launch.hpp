// What the operations that verify chains share: rows of logits are told their requests and get their distributions, and
// the kernels of the kinds that a call asks for are chosen.
#pragma once

#include "gpu/operations/verify_rows.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

// The request of a row: the last whose rows begin at it or before. extra_rows: how many more rows than drafts a request
// has. Offsets that do not ascend give some request, and nothing out of bounds.
__device__ std::int64_t request_of_row(Global<const std::int64_t> cu_num_draft_tokens, std::int64_t requests,
                                       std::int64_t extra_rows, std::int64_t row) {
  std::int64_t low = 0;
  std::int64_t high = requests - 1;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    const std::int64_t begin = cu_num_draft_tokens[middle];
    if (begin + middle * extra_rows <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// What the pipeline wants to know of target rows: their requests, and the drafts that stand before them. Grid: a thread
// a row.
__global__ void describe_target_rows(Drafts drafts, std::int64_t requests, Global<std::int32_t> row_request,
                                     Global<std::int64_t> row_draft_begin, Global<std::int32_t> row_draft_len) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= drafts.draft_tokens_total + requests) return;
  const std::int64_t request = request_of_row(drafts.cu_num_draft_tokens, requests, 1, row);
  const std::int64_t place = row - drafts.target_row(request);
  const bool right = drafts.is_in_place(request) && place >= 0 && place <= drafts.length(request);
  row_request[row] = static_cast<std::int32_t>(request);
  row_draft_begin[row] = right ? drafts.first(request) : 0;
  row_draft_len[row] = right ? static_cast<std::int32_t>(place) : 0;
}

// The requests of proposal rows. Grid: a thread a row.
__global__ void describe_proposal_rows(Drafts drafts, std::int64_t requests, Global<std::int32_t> row_request) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= drafts.draft_tokens_total) return;
  row_request[row] = static_cast<std::int32_t>(request_of_row(drafts.cu_num_draft_tokens, requests, 0, row));
}

}  // namespace

// Warps, one a request, in blocks.
inline std::int64_t blocks_of_warps(std::int64_t warps, std::uint32_t threads) {
  const std::int64_t per_block = threads / 32;
  return (warps + per_block - 1) / per_block;
}

// What rows of logits need; elsewhere null.
struct VerifyScratch {
  Global<std::int32_t> target_request;
  Global<std::int64_t> target_draft_begin;
  Global<std::int32_t> target_draft_len;
  Global<std::int32_t> proposal_request;
  PipelineScratch target;
  PipelineScratch proposal;

  static VerifyScratch in(OperationMemory& memory, const draftproof_verify_arguments& a) {
    VerifyScratch scratch{};
    if (a.target_kind == DRAFTPROOF_LOGITS) {
      scratch.target_request = memory.scratch<std::int32_t>("target_request", target_rows_of(a));
      scratch.target_draft_begin = memory.scratch<std::int64_t>("target_draft_begin", target_rows_of(a));
      scratch.target_draft_len = memory.scratch<std::int32_t>("target_draft_len", target_rows_of(a));
      scratch.target = PipelineScratch::in(memory, target_input(a));
    }
    if (a.proposal_kind == DRAFTPROOF_LOGITS && a.draft_tokens_total > 0) {
      scratch.proposal_request = memory.scratch<std::int32_t>("proposal_request", a.draft_tokens_total);
      scratch.proposal = PipelineScratch::in(memory, proposal_input(a));
    }
    return scratch;
  }
};

// The rows of one call.
class VerifyLaunch {
 public:
  VerifyLaunch(const draftproof_verify_arguments& a, const draftproof_settings& settings, OperationMemory& memory,
               const VerifyScratch& scratch)
      : a_(a), settings_(settings), memory_(memory), scratch_(scratch) {
    drafts_.tokens = memory.input("draft_tokens", a.draft_tokens, a.draft_tokens_total);
    drafts_.cu_num_draft_tokens = memory.input("cu_num_draft_tokens", a.cu_num_draft_tokens, a.requests + 1);
    drafts_.seed = memory.input("seed", a.randomness.seed, a.requests);
    drafts_.step = memory.input("step", a.randomness.step, a.requests);
    drafts_.vocab_size = a.vocab_size;
    drafts_.tiles = tiles_of(a.vocab_size);
    drafts_.draft_tokens_total = a.draft_tokens_total;
    drafts_.draft_len_max = a.draft_len_max;
  }

  // run(VerifyRows<kTarget, kProposal>) for the kinds of the call, once its rows of logits have their distributions.
  template <class Run>
  void with_rows(Run run) const {
    with_target([&](auto target) {
      constexpr int kTarget = decltype(target)::kKind;
      with_proposal([&](auto proposal) {
        constexpr int kProposal = decltype(proposal)::kKind;
        run(VerifyRows<kTarget, kProposal>{drafts_, target, proposal});
      });
    });
  }

 private:
  template <class Run>
  void with_target(Run run) const {
    if (a_.target_kind == DRAFTPROOF_PROBABILITIES) {
      return run(RowSource<DRAFTPROOF_PROBABILITIES>{
          view_of(memory_, "target", a_.target, target_rows_of(a_), a_.vocab_size), a_.vocab_size});
    }
    launch(describe(settings_, "describe_target_rows", (target_rows_of(a_) + 127) / 128, 128), describe_target_rows,
           drafts_, a_.requests, scratch_.target_request, scratch_.target_draft_begin, scratch_.target_draft_len);
    PipelineInput input = target_input(a_);
    input.row_draft_tokens = drafts_.tokens;
    input.row_draft_begin = scratch_.target_draft_begin;
    input.row_draft_len = scratch_.target_draft_len;
    input.row_request = scratch_.target_request;
    run(RowSource<DRAFTPROOF_LOGITS>{launch_pipeline(settings_, memory_, input, scratch_.target)});
  }
  // Without a single draft no proposal row is there to be looked at.
  template <class Run>
  void with_proposal(Run run) const {
    if (a_.proposal_kind == DRAFTPROOF_ONE_HOT || a_.draft_tokens_total == 0)
      return run(RowSource<DRAFTPROOF_ONE_HOT>{});
    if (a_.proposal_kind == DRAFTPROOF_PROBABILITIES) {
      return run(RowSource<DRAFTPROOF_PROBABILITIES>{
          view_of(memory_, "proposal", a_.proposal, a_.draft_tokens_total, a_.vocab_size), a_.vocab_size});
    }
    launch(describe(settings_, "describe_proposal_rows", (a_.draft_tokens_total + 127) / 128, 128),
           describe_proposal_rows, drafts_, a_.requests, scratch_.proposal_request);
    PipelineInput input = proposal_input(a_);
    input.row_request = scratch_.proposal_request;
    run(RowSource<DRAFTPROOF_LOGITS>{launch_pipeline(settings_, memory_, input, scratch_.proposal)});
  }

  const draftproof_verify_arguments& a_;
  const draftproof_settings& settings_;
  OperationMemory& memory_;
  const VerifyScratch& scratch_;
  Drafts drafts_{};
};

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
