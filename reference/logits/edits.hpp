// The edits of a logits row before the temperature, each a function of (logits, its parameter, history) alone. They run
// in the order in which they stand here. -infinity stays -infinity under all of them: a masked token cannot come back.
#pragma once

#include <span>

#include "reference/logits/history.hpp"
#include "reference/logits/logits_part.hpp"
#include "reference/logits/parameters.hpp"

namespace draftproof {

// allowed ids and grammar bitmask -> bad words -> min_tokens: masked tokens become -infinity.
void mask_tokens(const RowConstraints& constraints, const History& history, const LogitsPart& part);

// logit_bias: l += value.
void add_bias(const RowConstraints& constraints, const LogitsPart& part);

// repetition penalty (prompt and output), frequency penalty, presence penalty, in that order, over the last
// penalty_last_n tokens (PenaltyWindow says of what).
// (DRY comes after them: dry_penalty.hpp.)
void penalise(const RowParameters& parameters, const History& history, const LogitsPart& part);

// Do the parameters or constraints of a row look at its history at all?
bool needs_history(const RowParameters& parameters, const RowConstraints& constraints);

}  // namespace draftproof
