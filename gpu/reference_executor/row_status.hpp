// What is wrong with a row, told by looking at its elements one by one: where the reference throws an Error, this says
// which draftproof_row_status that is.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/draftproof.h"

namespace draftproof::reference_executor {

// Of processed logits. limited: a logit above 2^29 is refused, as in every row that is not greedy.
std::int32_t status_of_logits(std::span<const float> logits, bool limited);

// Of a row of probabilities that is drawn from, or subtracted from another.
std::int32_t status_of_probabilities(std::span<const float> probabilities);

}  // namespace draftproof::reference_executor
