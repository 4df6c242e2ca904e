// What the operations that verify chains share: requests are spread over their rows, rows of logits get their laws, and
// the kernels of the kinds that a call asks for are chosen.
#pragma once

#include <type_traits>

#include "gpu/kernels/verify_rows.cuh"
#include "gpu/operations/launch_law.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

// Which request a row belongs to, and which of its rows it is. Grid: a warp a request. proposal_request may be null.
__global__ void spread_requests(Global<const std::int64_t> cu_num_draft_tokens, std::int64_t requests,
                                Global<std::int32_t> target_request, Global<std::int64_t> target_draft_begin,
                                Global<std::int32_t> target_place, Global<std::int32_t> proposal_request) {
  const std::int64_t request = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (request >= requests) return;
  const std::int64_t begin = cu_num_draft_tokens[request];
  const std::int64_t end = cu_num_draft_tokens[request + 1];
  for (std::int64_t i = begin + lane_of_thread(); i <= end; i += 32) {
    target_request[i + request] = static_cast<std::int32_t>(request);
    target_draft_begin[i + request] = begin;
    target_place[i + request] = static_cast<std::int32_t>(i - begin);
    if (proposal_request != nullptr && i < end) proposal_request[i] = static_cast<std::int32_t>(request);
  }
}

}  // namespace

inline std::int64_t target_rows_of(const draftproof_verify_arguments& a) {
  return a.draft_tokens_total + a.requests;
}

// Warps, one a request, in blocks.
inline std::int64_t blocks_of_warps(std::int64_t warps, std::uint32_t threads) {
  const std::int64_t per_block = threads / 32;
  return (warps + per_block - 1) / per_block;
}

// Target rows as the pipeline takes them; the draft pointers are not set.
inline PipelineInput target_input(const draftproof_verify_arguments& a) {
  PipelineInput input;
  input.rows = target_rows_of(a);
  input.requests = a.requests;
  input.vocab_size = a.vocab_size;
  input.logits = a.target;
  input.unconditional = a.unconditional;
  input.parameters = a.parameters;
  input.constraints = a.constraints;
  return input;
}

// Proposal rows: of a drafter's parameters, temperature and filters alone.
inline PipelineInput proposal_input(const draftproof_verify_arguments& a) {
  PipelineInput input;
  input.rows = a.draft_tokens_total;
  input.requests = a.requests;
  input.vocab_size = a.vocab_size;
  input.logits = a.proposal;
  input.parameters.temperature = a.draft_parameters.temperature;
  input.parameters.top_k = a.draft_parameters.top_k;
  input.parameters.top_p = a.draft_parameters.top_p;
  input.parameters.min_p = a.draft_parameters.min_p;
  input.parameters.filter_order = a.draft_parameters.filter_order;
  input.parameters.ties = a.draft_parameters.ties;
  return input;
}

struct VerifyScratch {
  Global<std::int32_t> target_request;      // [target rows]
  Global<std::int64_t> target_draft_begin;  // [target rows]
  Global<std::int32_t> target_place;        // [target rows]
  Global<std::int32_t> proposal_request;    // [proposal rows], where they are logits; else null
  PipelineScratch target;                   // where they are logits
  PipelineScratch proposal;

  static VerifyScratch in(OperationMemory& memory, const draftproof_verify_arguments& a) {
    VerifyScratch scratch{};
    scratch.target_request = memory.scratch<std::int32_t>("target_request", target_rows_of(a));
    scratch.target_draft_begin = memory.scratch<std::int64_t>("target_draft_begin", target_rows_of(a));
    scratch.target_place = memory.scratch<std::int32_t>("target_place", target_rows_of(a));
    if (a.target_kind == DRAFTPROOF_LOGITS) scratch.target = PipelineScratch::in(memory, target_input(a));
    if (a.proposal_kind == DRAFTPROOF_LOGITS && a.draft_tokens_total > 0) {
      scratch.proposal_request = memory.scratch<std::int32_t>("proposal_request", a.draft_tokens_total);
      scratch.proposal = PipelineScratch::in(memory, proposal_input(a));
    }
    return scratch;
  }
};

// The rows of one call: laws are made as they are asked for.
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
  }

  void spread_requests_over_rows() const {
    const std::uint32_t threads = block_threads(settings_, 128);
    launch(describe(settings_, "spread_requests", blocks_of_warps(a_.requests, threads), threads), spread_requests,
           drafts_.cu_num_draft_tokens, a_.requests, scratch_.target_request, scratch_.target_draft_begin,
           scratch_.target_place, scratch_.proposal_request);
  }

  // run(VerifyRows<kTarget, kProposal>) for the kinds of the call. Rows of logits need spread_requests_over_rows.
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
    PipelineInput input = target_input(a_);
    input.row_draft_tokens = drafts_.tokens;
    input.row_draft_begin = scratch_.target_draft_begin;
    input.row_draft_len = scratch_.target_place;
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

inline VerifyOutputs verify_outputs(OperationMemory& memory, const draftproof_verify_arguments& a) {
  const std::int64_t places = a.requests * (a.draft_len_max + 1);
  return {memory.output("num_accepted", a.num_accepted, a.requests), memory.output("tokens", a.tokens, places),
          memory.output("logprobs", a.logprobs, places), memory.output("status", a.status, a.requests),
          a.draft_len_max};
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
