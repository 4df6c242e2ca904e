// `validate --replay DIR`: published recordings replayed at published cost, beside the published speedups.
#pragma once

#include <string>
#include <vector>

#include "cli/shared/command.hpp"

namespace draftproof {

// DIR holds JSON lines as of sim/acceptance/recording.hpp, *.jsonl. Errors (input): no such file in it, or a malformed
// one. A published speedup that is missed by more than 3 % is a failure.
void run_replay(const std::string& folder, bool json, ProgramContext& context);

}  // namespace draftproof
