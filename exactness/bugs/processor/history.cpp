// The history that penalties and min_tokens count, as engines with speculation get it wrong: production's rows with the
// output tokens of another history.

#include "exactness/bugs/families.hpp"
#include "exactness/bugs/processor/replay.hpp"

namespace draftproof {
namespace {

RowParameters with_penalties() {
  RowParameters parameters;
  parameters.frequency_penalty = 0.75f;
  parameters.presence_penalty = 0.25f;
  return parameters;
}

ReplayRequest penalised_request() {
  ReplayRequest request;
  request.parameters = with_penalties();
  return request;
}

ReplayRequest request_with_min_tokens() {
  static const std::vector<Token> stop_ids{0, 1, 2, 3, 4, 5};
  ReplayRequest request;
  request.constraints.min_tokens = 20;
  request.constraints.stop_ids = stop_ids;
  return request;
}

// Penalties never reach the verifier.
Emission verify_without_penalties(const VerifyRequest& request) {
  VerifyRequest bare = request;
  bare.parameters.frequency_penalty = 0.0f;
  bare.parameters.presence_penalty = 0.0f;
  return verify_soundly(bare);
}

// Only the last token of every step is added to the history.
StepVerifier verify_with_last_tokens() {
  return [seen = std::vector<Token>{}, output_len = std::size_t{0}](const VerifyRequest& request) mutable {
    if (request.output_tokens.size() > output_len) seen.push_back(request.output_tokens.back());
    output_len = request.output_tokens.size();
    VerifyRequest with_seen = request;
    with_seen.output_tokens = seen;
    return verify_by_coupling(with_seen, output_len);
  };
}

// The drafts of every step are added to the history, and those that were rejected stay there.
StepVerifier verify_with_rejected_drafts() {
  return [rejected = std::vector<Token>{}](const VerifyRequest& request) mutable {
    std::vector<Token> seen(request.output_tokens.begin(), request.output_tokens.end());
    seen.insert(seen.end(), rejected.begin(), rejected.end());
    VerifyRequest with_rejected = request;
    with_rejected.output_tokens = seen;
    Emission emission = verify_by_coupling(with_rejected, request.output_tokens.size());
    rejected.insert(rejected.end(), request.draft.tokens.begin() + emission.num_accepted, request.draft.tokens.end());
    return emission;
  };
}

}  // namespace

std::vector<Bug> history_bugs() {
  return {
      {.id = "B68",
       .source = "vllm #18902",
       .fault = "frequency and presence penalties are not wired into speculative decoding",
       .hunts = {replay_hunt(penalised_request, [] { return verify_without_penalties; })}},
      {.id = "B69",
       .source = "sglang #33643",
       .fault = "only the last token of a step enters the history, so penalties are weak and min_tokens counts steps",
       .hunts = {replay_hunt(penalised_request, verify_with_last_tokens),
                 replay_hunt(request_with_min_tokens, verify_with_last_tokens)}},
      {.id = "B71",
       .source = "vmlx-swift #357",
       .fault = "the history is shared with the drafts, and those that are rejected stay in its counts",
       .hunts = {replay_hunt(penalised_request, verify_with_rejected_drafts)}},
  };
}

}  // namespace draftproof
