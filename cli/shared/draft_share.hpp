// What share of the target's bytes of weights a drafter's pass reads: what it costs, without timing it.
#pragma once

#include "reference/draft/drafter_choice.hpp"
#include "reference/model/text_model.hpp"

namespace draftproof {

// 0 where drafts are looked up or counted. Errors (usage, input) at `where`: a model that cannot be opened, layers and
// bits that the target has not got.
double draft_share(const DrafterChoice& choice, const TextModel& target, const TextModelOptions& options,
                   const std::string& where);

}  // namespace draftproof
