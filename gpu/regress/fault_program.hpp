// The programs of gpu/faults where they are built: the regression with the kernels of one operation compiled from a
// text that has one fault. They say each case's result as soon as it is there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/regress/regression.hpp"

namespace draftproof::regress {

// Where they are built: the folder faults of the build folder.
std::string faults_folder();

// The ids of the faults that are built in this folder, sorted; empty where it is not there.
std::vector<std::string> built_faults(const std::string& folder);

// Runs the cases that must find the fault, on the CPU executor in the order of `seed`. `result` is called for each, in
// order; false ends the program. Errors (usage) at `where`: no such fault is built; (internal): it ended otherwise.
void run_fault(const std::string& folder, const std::string& id, std::uint64_t seed, const std::string& where,
               const std::function<bool(CaseResult)>& result);

}  // namespace draftproof::regress
