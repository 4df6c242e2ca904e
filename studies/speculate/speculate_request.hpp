// The settings of panel "Speculate" as what the engine takes: the same as `draftproof generate` makes of
// command_arguments().
#pragma once

#include <vector>

#include "engine/decode/paired_run.hpp"
#include "engine/draft/drafter_choice.hpp"
#include "engine/model/text_model.hpp"
#include "studies/speculate/speculate.hpp"

namespace draftproof {

// Errors (usage) name the setting, its value and what is expected: unknown names, numbers out of range, a tree that the
// verifier does not take, drafter none.
void validate(const SpeculateSettings& settings);

// The outputs as jobs, with the seeds seed, seed + 1, ...; their spans point into the model.
std::vector<DecodeJob> jobs_of(const SpeculateSettings& settings, const TextModel& model);

// Drafts of one size: what a draft of K tokens gains and costs is what the panel shows.
SpeculationChoice speculation_of(const SpeculateSettings& settings);

}  // namespace draftproof
