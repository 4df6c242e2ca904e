// The rows of a verifier's call as the pipeline takes them, and its outputs.
#pragma once

#include "gpu/kernels/verify_rows.cuh"
#include "gpu/operations/launch_distribution.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline std::int64_t target_rows_of(const draftproof_verify_arguments& a) {
  return a.draft_tokens_total + a.requests;
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

inline VerifyOutputs verify_outputs(OperationMemory& memory, const draftproof_verify_arguments& a) {
  const std::int64_t places = a.requests * (a.draft_len_max + 1);
  return {memory.output("num_accepted", a.num_accepted, a.requests), memory.output("tokens", a.tokens, places),
          memory.output("logprobs", a.logprobs, places), memory.output("status", a.status, a.requests),
          a.draft_len_max};
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
