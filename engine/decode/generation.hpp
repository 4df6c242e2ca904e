// Outcome of one request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/decode_step.hpp"
#include "engine/decode/stop.hpp"
#include "engine/metrics/acceptance.hpp"
#include "reference/logits/logprobs.hpp"

namespace draftproof {

struct Generation {
  std::vector<Token> tokens;
  std::vector<TokenOrigin> origins;                 // of every token
  std::string text;                                 // released, where there is a detokeniser
  FinishReason finish_reason = FinishReason::none;  // none: max_steps were done, or it failed
  std::optional<bool> grammar_complete;             // where there is one: the tokens are a sentence of it
  std::exception_ptr failure;                       // an Error that says why it failed; null where it did not
  // With num_logprobs: of every token, the likeliest ones of its row before parameters, and the token itself.
  std::vector<std::vector<TokenLogprob>> logprobs;
  // With num_prompt_logprobs the same of every token of the prompt; empty of one that no row stands before.
  std::vector<std::vector<TokenLogprob>> prompt_logprobs;
  std::int64_t target_steps = 0;       // forward steps of the target model that emitted
  AcceptanceCounts acceptance;         // speculative only
  std::vector<SpeculativeStep> steps;  // with keep_steps

  std::int64_t count(TokenOrigin origin) const { return std::count(origins.begin(), origins.end(), origin); }
};

}  // namespace draftproof
