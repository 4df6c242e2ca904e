// Inputs of the cases of chain and block verification: requests with ragged drafts that were drawn from their
// proposals, and targets near enough to accept some and reject some.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/token.hpp"
#include "gpu/draftproof.h"
#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {

struct VerifyShape {
  std::vector<std::int32_t> draft_lens;
  std::int64_t vocab_size = 1;
  std::int32_t target_kind = DRAFTPROOF_PROBABILITIES;
  std::int32_t proposal_kind = DRAFTPROOF_PROBABILITIES;
  std::int32_t target_dtype = DRAFTPROOF_F32;
  std::int32_t proposal_dtype = DRAFTPROOF_F32;
  float spread = 3.0f;        // of logits
  float distance = 0.15f;     // of the target's logits from the proposal's, in units of spread
  double masked_share = 0.0;  // of the target's tokens
  bool dead_token = false;    // the last token has no mass in any row
};

struct VerifyInputs {
  VerifyShape shape;
  std::int64_t target_stride = 0;
  std::int64_t proposal_stride = 0;
  std::vector<float> target;    // [draft tokens + requests, target_stride]
  std::vector<float> proposal;  // [draft tokens, proposal_stride]
  std::vector<Token> draft_tokens;
  std::vector<std::int64_t> cu_num_draft_tokens;  // a case may make them invalid, once all else is made
  std::vector<std::uint64_t> seed;
  std::vector<std::uint32_t> step;
  ParameterLists parameters;
  ParameterLists draft_parameters;
  std::vector<Token> history_tokens;
  std::vector<std::int64_t> history_offsets;
  std::vector<std::int64_t> prompt_len;
  std::vector<std::uint32_t> allowed_mask;  // [target rows, ceil(vocab_size / 32)]
  bool wants_logprobs = true;
  bool gives_sums = false;  // of the proposal rows, which are f32; cu_num_draft_tokens is valid

  std::int64_t requests() const { return static_cast<std::int64_t>(shape.draft_lens.size()); }
  // Element `token` of the target or proposal row `place` of a request.
  float& target_at(std::int64_t request, std::int64_t place, std::int64_t token);
  float& proposal_at(std::int64_t request, std::int64_t place, std::int64_t token);
  Token& draft_at(std::int64_t request, std::int64_t place);
};

VerifyInputs verify_inputs(std::uint64_t seed, const VerifyShape& shape);

// The largest logit of a target row, the first among equals.
Token first_token(VerifyInputs& in, std::int64_t request, std::int64_t place);

// Every request gets a history, a part of it the prompt, that its drafts repeat in part.
void add_histories(std::uint64_t seed, VerifyInputs& in);

// All arguments but the outputs and the workspace.
draftproof_verify_arguments arguments_of(CaseRun& run, const VerifyInputs& in);

// A verifier; all have one signature.
struct VerifyCall {
  const char* name;
  std::int64_t (*workspace_bytes)(const draftproof_verify_arguments&);
  void (*call)(const draftproof_verify_arguments&, const draftproof_settings&);
};
// Gives the call its outputs and its workspace, and makes it. A path is of trees.
void run_verifier(const VerifyCall& verifier, CaseRun& run, draftproof_verify_arguments arguments, bool wants_logprobs,
                  bool wants_path = false);

RegressCase verify_case(const VerifyCall& verifier, const std::string& what, VerifyInputs in,
                        std::vector<int> block_threads = {0});
// The same with verify_inputs(seed, shape).
RegressCase verify_case(const VerifyCall& verifier, const std::string& what, std::uint64_t seed,
                        const VerifyShape& shape, std::vector<int> block_threads = {0});

// The cases of chain and block verification alike.
std::vector<RegressCase> shared_verify_cases(const VerifyCall& verifier);

}  // namespace draftproof::regress
