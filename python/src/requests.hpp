// Verify requests out of arrays: what every function of the module that processes rows is given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/src/arrays.hpp"
#include "reference/step/request.hpp"

namespace draftproof::python {

// B requests with M drafts in all, by name; everything but `target` may be absent:
//   target                    rows [M + B, V]: of each request its drafts' rows, then its bonus row
//   target_is_probabilities   flag
//   unconditional             rows [M + B, V], for guidance_scale
//   draft_tokens              int32 [M];  cu_num_draft_tokens  int64 [B + 1] from 0;  draft_parents  int32 [M]
//   proposal                  rows [M, V] of chains, [M + B, V] of trees; absent: one-hot proposals
//   proposal_is_logits        flag: logits, not probabilities;  draft_processed: flag, final as they are
//   temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, guidance_scale  float32 [B];
//   top_k  int32 [B];  min_tokens  int64 [B]
//   top_p_numerator, top_p_denominator  uint32 [B], compared in place of top_p where the denominator is not 0
//   filter_order, ties, penalty_window, guidance_form, nan_policy  text
//   bitmask                   uint32 [(M + B) ceil(V / 32)]
//   every name of sampler_parameter_names()  float32 [B]
//   seeds  uint64 [B];  steps, positions  uint32 [B]
//   uniforms  float64 [M] or [M + B];  draw_uniforms  [M + B] or [B];  exponential_noise, gumbel_noise  [(M + B) V] or
//   [B V];  recovered_tokens  int32 [M];  bonus_tokens  int32 [B]
// Lists, one a request, are one array and its offsets int64 [B + 1]:
//   prompt_tokens, output_tokens, stop_ids, allowed_ids, dry_breakers, logprob_token_ids  int32, with
//   cu_prompt_tokens, ...
//   logit_bias_tokens  int32, logit_bias_values  float32, with cu_logit_bias
//   bad_word_tokens  int32 with cu_bad_word_tokens [S + 1], sequences; cu_bad_words [B + 1], those of each request
struct Requests {
  std::vector<VerifyRequest> requests;
  std::vector<std::int64_t> offsets;  // [B + 1] of drafts
  std::vector<LogitBias> logit_bias;  // what the constraints of the requests refer to
  std::vector<BadWords> bad_words;    // [B] or empty

  std::int64_t vocab_size() const { return requests.empty() ? 0 : requests.front().target.vocab_size; }
};

// Errors (usage) naming the array. The requests refer to what the arguments hold, and to what lies beside them here.
Requests requests_of(Arguments& arguments);

}  // namespace draftproof::python
