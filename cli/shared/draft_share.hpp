// Share of the target's weights that a drafter's pass multiplies with: what it costs, without timing it. Not of their
// bytes: small formats are unpacked, and a pass over 4-bit weights takes as long as one over the file's.
#pragma once

#include "engine/draft/drafter_choice.hpp"
#include "engine/model/text_model.hpp"

namespace draftproof {

// 0 where drafts are looked up or counted. Errors (usage, input) at `where`: a model that cannot be opened, layers and
// bits that the target has not got.
double draft_share(const DrafterChoice& choice, const TextModel& target, const TextModelOptions& options,
                   const std::string& where);

}  // namespace draftproof
