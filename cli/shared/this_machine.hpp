// This computer's engine timed on a model: what calibrate writes and validate predicts from.
#pragma once

#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "engine/draft/drafter_choice.hpp"
#include "engine/model/text_model.hpp"
#include "sim/machine/machine_profile.hpp"
#include "sim/machine/speedup_prediction.hpp"

namespace draftproof {

struct TimedModel {
  TextModel text;
  MachineProfile profile;
};

// Opens a transformer and times it (sim/machine/machine_profile.hpp), with a progress bar. Errors (usage, input) at
// --model: it cannot be opened, or it has no passes to time.
TimedModel time_this_machine(const std::string& model, const TextModelOptions& options);

// The cost of a step for rules that choose drafts by it: of the machine in the file `path`, which --cost names; empty:
// the default table (DefaultStepCost). draft_share: as MachineCost takes it. Errors (input): the file.
std::shared_ptr<const StepCost> read_step_cost(const std::string& path, double draft_share);

std::string processor_name();  // as JSON documents have it; "unknown" where the system does not tell
Json machine_profile_json(const MachineProfile& profile);
void print_machine_profile(const MachineProfile& profile, std::ostream& out);

// Share of the target's weights that a drafter's pass multiplies with: what it costs, without timing it. Not of their
// bytes: small formats are unpacked, and a pass over 4-bit weights takes as long as one over the file's.

// 0 where drafts are looked up or counted. Errors (usage, input) at `where`: a model that cannot be opened, layers and
// bits that the target has not got.
double draft_share(const DrafterChoice& choice, const TextModel& target, const TextModelOptions& options,
                   const std::string& where);

// Counts of each request of a row, which `speculate` writes and `validate --this-machine` reads.

Json counted_requests_json(std::span<const CountedRequest> requests);
// Errors (input) at `where`: a count that is missing, or no whole number.
std::vector<CountedRequest> read_counted_requests(const Json& requests, const std::string& where);

}  // namespace draftproof
