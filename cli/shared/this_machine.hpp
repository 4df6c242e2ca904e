// This computer's engine timed on a model: what calibrate writes and validate predicts from.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "cli/shared/json_document.hpp"
#include "engine/model/text_model.hpp"
#include "sim/machine/machine_profile.hpp"

namespace draftproof {

struct TimedModel {
  TextModel text;
  MachineProfile profile;
};

// Opens a transformer and times it (sim/machine/time_machine.hpp), with a progress bar. Errors (usage, input) at
// --model: it cannot be opened, or it has no passes to time.
TimedModel time_this_machine(const std::string& model, const TextModelOptions& options);

// The cost of a step for rules that choose drafts by it: of the machine in the file `path`, which --cost names; empty: as
// on a processor with AVX-512 VNNI. draft_share: cli/shared/draft_share.hpp. Errors (input): the file.
std::shared_ptr<const StepCost> read_step_cost(const std::string& path, double draft_share);

std::string processor_name();  // as JSON documents have it; "unknown" where the system does not tell
Json machine_profile_json(const MachineProfile& profile);
void print_machine_profile(const MachineProfile& profile, std::ostream& out);

}  // namespace draftproof
