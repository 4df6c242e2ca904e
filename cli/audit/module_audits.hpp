// Audits that the Python module makes: of its planted faults (python/draftproof/planted), and of running servers
// (python/draftproof/server).
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

// `draftproof audit --self-test --profile NAME`. Prints a line for each audit as it ends, or one document; the
// context's exit code is `finding` where a sound callable is accused or a fault missed that is meant to be found.
// Errors (usage): no interpreter imports the module, or it does not know an argument.
void answer_planted(const PlantedArguments& arguments, bool json, ProgramContext& context);

// Are these the arguments of a server's audit? They name an address, http://... or https://..., or a file that such an
// audit saved, whatever it is called. Errors (usage): one is HOST:PORT without http://.
bool audits_server(const std::vector<std::string>& arguments);
// Hands them to the module as they are: its options are not those of a file's audit. The context's exit code is the
// module's: 0 consistent, 1 biased or a failure, 2 usage or no server, 4 inconclusive. Ctrl-C ends its questions, and
// what was answered is judged. Errors (usage): no interpreter imports the module.
void answer_server(const std::vector<std::string>& arguments, ProgramContext& context);

}  // namespace draftproof
