// S: speculative against plain decoding, token for token and logprob for logprob, with the same state.
//
// Both race over the noise of absolute positions (verify/coupled.hpp), so that the emitted tokens do not depend on what
// was drafted: whatever differs comes from the rows. Rows are those of production (StepRows over a VerifyRequest);
// an engine is faulty by the request that it makes of its state, or by what it does with the rows.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "exactness/bugs/bug.hpp"
#include "reference/step/step_rows.hpp"

namespace draftproof {

// The mask of the position after `tokens` (prompt and output): [ceil(V/32)] words.
using Grammar = std::function<std::vector<std::uint32_t>(std::span<const Token> tokens)>;

inline constexpr std::int32_t kReplayVocabSize = 12;
inline constexpr std::size_t kReplayPromptLen = 3;

// Parameters of a request; the constraints' spans belong to the caller.
struct ReplayRequest {
  RowParameters parameters;
  RowConstraints constraints;
  Grammar grammar = nullptr;  // null: none
  bool logprobs = false;      // compared too, bit for bit
};

// Verifies one step. The request is right; a faulty engine verifies another.
using StepVerifier = std::function<Emission(const VerifyRequest& request)>;
// Called when a request starts: a verifier that has seen nothing of it yet.
using StartVerifier = std::function<StepVerifier()>;

// Coupled verification of the request's rows, at the position that it says or another one's.
Emission verify_by_coupling(const VerifyRequest& request, std::size_t position);
inline Emission verify_soundly(const VerifyRequest& request) {
  return verify_by_coupling(request, request.output_tokens.size());
}

// Decodes several prompts of a small random model, plainly and with drafts of 1 to 4 tokens, three in four of which are
// what plain decoding says. Cases are tokens.
Finding find_replay_difference(const ReplayRequest& request, const StartVerifier& start);

// The faulty engine against the one that verifies soundly.
Hunt replay_hunt(ReplayRequest (*request)(), const StartVerifier& faulty_engine);

}  // namespace draftproof
