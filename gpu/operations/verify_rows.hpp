// The rows of a verifier's call as the pipeline takes them, and its outputs.
#pragma once

#include "gpu/executors.hpp"
#include "gpu/kernels/verify_rows.cuh"
#include "gpu/operations/launch_distribution.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline std::int64_t target_rows_of(const draftproof_verify_arguments& a) {
  return a.draft_tokens_total + a.requests;
}

// Target rows as the pipeline takes them; the draft pointers are not set.
inline PipelineInput target_input(const draftproof_verify_arguments& a) {
  return pipeline_input(a, target_rows_of(a), a.target);
}

inline PipelineInput proposal_input(const draftproof_verify_arguments& a) {
  PipelineInput input;
  input.rows = a.draft_tokens_total;
  input.requests = a.requests;
  input.vocab_size = a.vocab_size;
  input.logits = a.proposal;
  input.parameters = draft_parameters_of(a.draft_parameters);
  input.sums = a.proposal_sums;
  return input;
}

inline Drafts drafts_of(OperationMemory& memory, const draftproof_verify_arguments& a) {
  Drafts drafts{};
  drafts.tokens = memory.input("draft_tokens", a.draft_tokens, a.draft_tokens_total);
  drafts.cu_num_draft_tokens = memory.input("cu_num_draft_tokens", a.cu_num_draft_tokens, a.requests + 1);
  drafts.seed = memory.input("seed", a.randomness.seed, a.requests);
  drafts.step = memory.input("step", a.randomness.step, a.requests);
  drafts.vocab_size = a.vocab_size;
  drafts.tiles = tiles_of(a.vocab_size);
  drafts.shape = {a.requests, a.draft_tokens_total, a.draft_len_max};
  return drafts;
}

// run(RowSource<kind>) with `rows` rows in the form in which the call has them. distributions(): those of logits.
template <class Distributions, class Run>
void with_source(OperationMemory& memory, const char* name, std::int32_t kind, const draftproof_rows& given,
                 std::int64_t rows, std::int64_t vocab_size, Distributions distributions, Run run) {
  if (kind == DRAFTPROOF_PROBABILITIES)
    return run(RowSource<DRAFTPROOF_PROBABILITIES>{view_of(memory, name, given, rows, vocab_size), vocab_size});
  run(RowSource<DRAFTPROOF_LOGITS>{distributions()});
}

inline VerifyOutputs verify_outputs(OperationMemory& memory, const draftproof_verify_arguments& a) {
  const std::int64_t places = a.requests * (a.draft_len_max + 1);
  return {memory.output("num_accepted", a.num_accepted, a.requests), memory.output("tokens", a.tokens, places),
          memory.output("logprobs", a.logprobs, places), memory.output("status", a.status, a.requests),
          a.draft_len_max};
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
