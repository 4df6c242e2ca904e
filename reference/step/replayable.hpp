// Which random numbers of an engine (verify/recorded_randomness.hpp) a verifier can be replayed with: coins for its
// drafts, and one source for each draw.
#pragma once

#include <string>

#include "reference/step/request.hpp"

namespace draftproof {

// Errors (input) at `where`: a uniform number outside [0, 1], noise that is none, a token outside the vocabulary.
void validate_recorded_numbers(const VerifyRequest& request, const std::string& where);

// Errors at `where`: numbers that the verifier does not take (usage, naming those that do), that are missing, that
// leave two ways to make one draw, or that are too many or too few (input).
void require_replayable(const VerifyRequest& request, const VerifierChoice& verifier, const std::string& where);

// Does the verifier throw coins on drafts, which fall by a Convention?
bool follows_convention(const VerifierChoice& verifier);

}  // namespace draftproof
