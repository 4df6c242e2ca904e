// Cases of a covering array: every two values of every two arguments of a call meet in one of them (arguments.hpp).
#pragma once

#include <string>
#include <vector>

#include "gpu/regress/case.hpp"
#include "gpu/regress/covering_inputs.hpp"

namespace draftproof::regress {

// One of the cases: its assignment, and a number that names it and seeds its inputs.
using CoveringRun = void (*)(CaseRun& run, const Assignment& given, std::uint64_t number);

// A case for each assignment of the call's covering array.
std::vector<RegressCase> covering_cases(const std::string& call, CoveringRun run);

std::vector<RegressCase> covering_row_cases(const std::string& call);     // mass_pass, guidance, sample, logprobs
std::vector<RegressCase> covering_verify_cases(const std::string& call);  // verify_chain, verify_block, verify_tree
std::vector<RegressCase> covering_tree_cases(const std::string& call);    // tree_mask, kv_commit

}  // namespace draftproof::regress
