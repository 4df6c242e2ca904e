// Parts that the operations on chains share: rows of logits receive their requests and their distributions, and the
// kernels of the kinds that a call asks for are chosen.
#pragma once

#include "gpu/operations/verify_rows.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

// Requests of the target and proposal rows, and the drafts before each target row; arrays of rows that are no logits
// are null. Grid: a warp a request, which writes the rows of its range.
__global__ void describe_rows(Drafts drafts, Global<std::int32_t> target_request,
                              Global<std::int64_t> target_draft_begin, Global<std::int32_t> target_draft_len,
                              Global<std::int32_t> proposal_request) {
  const std::int64_t request = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (request >= drafts.shape.requests) return;  // a whole warp
  const DraftRange range = draft_range_by_warp(drafts.cu_num_draft_tokens, drafts.shape, request);
  for (std::int64_t place = lane_of_thread(); place <= range.length(); place += 32) {
    if (target_request != nullptr) {
      const std::int64_t row = range.begin + request + place;
      target_request[row] = static_cast<std::int32_t>(request);
      target_draft_begin[row] = range.begin;
      target_draft_len[row] = range.valid ? static_cast<std::int32_t>(place) : 0;
    }
    if (proposal_request != nullptr && place < range.length())
      proposal_request[range.begin + place] = static_cast<std::int32_t>(request);
  }
}

}  // namespace

// Warps, one a request, in blocks.
inline std::int64_t blocks_of_warps(std::int64_t warps, std::uint32_t threads) {
  const std::int64_t per_block = threads / 32;
  return (warps + per_block - 1) / per_block;
}

// Scratch of rows of logits; elsewhere null.
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
      : a_(a), settings_(settings), memory_(memory), scratch_(scratch), drafts_(drafts_of(memory, a)) {}

  // run(VerifyRows<kTarget, kProposal>) for the kinds of the call, once its rows of logits have their distributions.
  template <class Run>
  void with_rows(Run run) const {
    if (scratch_.target_request != nullptr || scratch_.proposal_request != nullptr)
      launch(describe(settings_, "describe_rows", blocks_of_warps(a_.requests, 128), 128), describe_rows, drafts_,
             scratch_.target_request, scratch_.target_draft_begin, scratch_.target_draft_len,
             scratch_.proposal_request);
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
    const auto distributions = [&] {
      PipelineInput input = target_input(a_);
      input.row_draft_tokens = drafts_.tokens;
      input.row_draft_tokens_count = a_.draft_tokens_total;
      input.row_draft_begin = scratch_.target_draft_begin;
      input.row_draft_len = scratch_.target_draft_len;
      input.row_requests = {scratch_.target_request, a_.requests};
      return launch_pipeline(settings_, memory_, input, scratch_.target);
    };
    with_source(memory_, "target", a_.target_kind, a_.target, target_rows_of(a_), a_.vocab_size, distributions, run);
  }
  // Without a single draft no proposal row is there to be looked at.
  template <class Run>
  void with_proposal(Run run) const {
    if (a_.proposal_kind == DRAFTPROOF_ONE_HOT || a_.draft_tokens_total == 0)
      return run(RowSource<DRAFTPROOF_ONE_HOT>{});
    const auto distributions = [&] {
      PipelineInput input = proposal_input(a_);
      input.row_requests = {scratch_.proposal_request, a_.requests};
      return launch_pipeline(settings_, memory_, input, scratch_.proposal);
    };
    with_source(memory_, "proposal", a_.proposal_kind, a_.proposal, a_.draft_tokens_total, a_.vocab_size, distributions,
                run);
  }

  const draftproof_verify_arguments& a_;
  const draftproof_settings& settings_;
  OperationMemory& memory_;
  const VerifyScratch& scratch_;
  Drafts drafts_;
};

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
