// The edits of a logits row before the temperature, each a function of (logits, its parameter, history) alone. They run
// in the order in which they stand here. -infinity stays -infinity under all of them: a masked token cannot come back.
#pragma once

#include <span>

#include "reference/logits/history.hpp"
#include "reference/logits/parameters.hpp"

namespace draftproof {

// allowed ids and grammar bitmask -> bad words -> min_tokens: masked tokens become -infinity.
void mask_tokens(const RowConstraints& constraints, const History& history, std::span<float> logits);

// logit_bias: l += value.
void add_bias(const RowConstraints& constraints, std::span<float> logits);

// repetition penalty (prompt and output), frequency penalty, presence penalty, in that order.
// (DRY comes after them: dry_penalty.hpp.)
void penalise(const RowParameters& parameters, const History& history, std::span<float> logits);

// Do the parameters or constraints of a row look at its history at all?
bool needs_history(const RowParameters& parameters, const RowConstraints& constraints);

}  // namespace draftproof
