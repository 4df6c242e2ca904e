// Parts of a verb. To add one: a line in cli/verbs.hpp, its name in cli/CMakeLists.txt, and cli/<name>/command.cpp,
// which defines add_<name>().
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
  inconclusive = 4,  // no answer: too few samples, or nothing that could be compared here
};

// State that main() and the verb share. It outlives the parse.
struct ProgramContext {
  std::vector<std::string> arguments;      // those of main(), the first one replaced by "draftproof"
  ExitCode exit_code = ExitCode::success;  // a verb that has a finding says so here
};

// A verb of a program. `add` declares the options, --json among them, and what is done with them: that writes to
// standard output, and throws Error.
struct Command {
  std::string name;
  void (*add)(Options& options, ProgramContext& context);
};

// The verbs of this program (made by cli/CMakeLists.txt).
const std::vector<Command>& commands();

}  // namespace draftproof
