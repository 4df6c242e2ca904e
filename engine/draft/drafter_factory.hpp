// Makes a drafter that was chosen by name for a target.
#pragma once

#include <memory>

#include "engine/draft/drafter.hpp"
#include "engine/draft/drafter_choice.hpp"
#include "engine/model/text_model.hpp"

namespace draftproof {

class DraftHead;

// The language model whose rows a drafter draws from; null where its drafts have no probabilities. `target` must
// outlive it. Errors: as below.
std::shared_ptr<LanguageModel> make_draft_model(const DrafterChoice& choice, const TextModel& target,
                                                const TextModelOptions& options, const std::string& where);

// head:PATH of weights in 16 or 32 bits becomes head@8:PATH, which accepts as much and takes a quarter of the time
// (docs/heads.md); other choices stay. Errors: those of opening its files.
DrafterChoice with_packed_head(DrafterChoice choice);

// The head of a choice head:PATH, in the types of its file where no bits are named. Errors: as below.
std::shared_ptr<DraftHead> open_head(const DrafterChoice& choice, const TextModel& target,
                                     const TextModelOptions& options, const std::string& where);

// Null for none; heads as with_packed_head() says. `target` must outlive the drafter. draft_temperature: of drafters
// with probabilities; absent: that of each request, with its filters. Errors at `where` (usage, input): a drafter that
// the target has not got (layers of an n-gram model), a layer that there is not, a model that cannot be read or that
// shares no token.
std::shared_ptr<Drafter> make_drafter(const DrafterChoice& choice, const TextModel& target,
                                      std::optional<float> draft_temperature, const TextModelOptions& options,
                                      const std::string& where);

}  // namespace draftproof
