// Verify requests out of arrays: what every function of the module that processes rows is given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/src/arrays.hpp"
#include "reference/step/request.hpp"

namespace draftproof::python {

// By name, B requests with M drafts in all; everything but `target` may be absent:
//   target                    rows [M + B, V]: of each request its drafts' rows, then its bonus row
//   target_is_probabilities   flag
//   draft_tokens              int32 [M];  cu_num_draft_tokens  int64 [B + 1] from 0;  draft_parents  int32 [M]
//   proposal                  rows [M, V] of chains, [M + B, V] of trees: probabilities; absent: one-hot proposals
//   temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty  float32 [B];  top_k  int32 [B]
//   filter_order, ties, nan_policy  text
//   allowed_masks             uint32 [(M + B) ceil(V / 32)]
//   prompt_tokens, output_tokens  int32, with prompt_offsets, output_offsets  int64 [B + 1]
//   seeds  uint64 [B];  steps, positions  uint32 [B]
struct Requests {
  std::vector<VerifyRequest> requests;
  std::vector<std::int64_t> offsets;  // [B + 1] of drafts

  std::int64_t vocab_size() const { return requests.empty() ? 0 : requests.front().target.vocab_size; }
};

// Errors (usage) naming the array. The requests refer to what the
// arguments hold.
Requests requests_of(Arguments& arguments);

}  // namespace draftproof::python
