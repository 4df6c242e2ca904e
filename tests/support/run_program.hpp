// Runs another program and catches what it says.
#pragma once

#include <string>
#include <vector>

namespace draftproof::testing {

struct ProgramResult {
  int exit_code = -1;  // -1: it was killed by a signal
  std::string out;
  std::string err;
};

// `command` is the program (found through PATH unless it has a slash) and its arguments; no shell is involved.
// `environment` holds NAME=value settings that are added to ours, or replace them. Standard input is empty.
ProgramResult run_command(const std::vector<std::string>& command, const std::vector<std::string>& environment = {});

// The draftproof program under test with these arguments.
ProgramResult run_draftproof(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment = {});

}  // namespace draftproof::testing
