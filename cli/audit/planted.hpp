// `draftproof audit --self-test --profile NAME`: what that profile of audit_callable, of the Python module, finds of
// planted faults (python/draftproof/planted).
#pragma once

#include <string>
#include <vector>

#include "cli/shared/command.hpp"

namespace draftproof {

struct PlantedArguments {
  std::string profile;
  std::string kind = "all";
  std::vector<std::string> faults;  // by name; none: all
  int processes = 1;
};

// Prints a line for each audit as it ends, or one document; the context's exit code is `finding` where a sound callable
// is accused or a fault missed that is meant to be found. Errors (usage): no interpreter imports the module, or it does
// not know an argument.
void answer_planted(const PlantedArguments& arguments, bool json, ProgramContext& context);

}  // namespace draftproof
