// What a verb is made of. To add one: a line in cli/verbs.hpp, and cli/<name>/command.cpp, which defines add_command().
// CMake makes a program of each such folder.
#pragma once

#include <string>
#include <vector>

#include "cli/shared/options.hpp"

namespace draftproof {

enum class ExitCode {
  success = 0,
  finding = 1,       // the answer is "no": a distribution that is not exact, files that differ
  misuse = 2,        // a wrong option or input; one line on standard error
  internal = 3,      // a bug of ours
  inconclusive = 4,  // too few samples for an answer
};

// What main() and the verb share. It outlives the parse.
struct ProgramContext {
  std::vector<std::string> arguments;      // those of main(), the first one replaced by "draftproof"
  ExitCode exit_code = ExitCode::success;  // a verb that has a finding says so here
};

// Each verb's program defines it: declares the options, --json among them, and what is done with them. That writes to
// standard output, and throws Error.
void add_command(Options& options, ProgramContext& context);

}  // namespace draftproof
