// How far the first token of a step is from the target under a lossy rule, on the step's own rows: p after the context,
// q that the first draft was drawn from. Every step reads these rows.
#pragma once

#include <optional>

#include "reference/step/step_rows.hpp"

namespace draftproof {

// Total variation of the token from a draw from p, by the formula of the rule's file in verify/lossy; of fly with a
// window shorter than the draft the bound, as if every window passed. Nothing of a rule for which there is none: one
// that is lossless, or looks at siblings. Errors: RowError.
std::optional<double> first_token_distance(const VerifierChoice& choice, StepRows& rows);

}  // namespace draftproof
