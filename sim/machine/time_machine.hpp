// Times steps of this computer's engine on a model: five configurations, in turns, so that all meet the same
// disturbances; the lower quartile of each. A step of n rows verifies n - 1 guesses.
#pragma once

#include <functional>

#include "engine/model/language_model.hpp"
#include "sim/machine/machine_profile.hpp"

namespace draftproof {

struct MachineTiming {
  std::vector<std::int64_t> rows = {1, 4, 8, 16};  // rising, the first one 1
  std::int64_t context_len = 96;
  std::int64_t far_context_len = 608;  // of one more pass of one row
  int repeats = 60;
};

// Fills passes and step_ms; what the computer and the model are is left to the caller. Errors (usage): a model with a
// smaller context. `done` is called after every repeat.
MachineProfile time_machine(LanguageModel& model, const MachineTiming& timing, const std::function<void()>& done = {});

}  // namespace draftproof
