// All regression cases, by operation.
#pragma once

#include <string>
#include <vector>

#include "gpu/regress/case.hpp"

namespace draftproof::regress {

std::vector<RegressCase> guidance_cases();
std::vector<RegressCase> kv_commit_cases();
std::vector<RegressCase> logprobs_cases();
std::vector<RegressCase> mass_pass_cases();
std::vector<RegressCase> sample_cases();
std::vector<RegressCase> tree_mask_cases();
std::vector<RegressCase> verify_block_cases();
std::vector<RegressCase> verify_chain_cases();
std::vector<RegressCase> verify_tree_cases();

// Those that have `part` in their name, in the order in which the table of gpu/README.md names the operations. Where
// part begins with an operation and a slash, the inputs of no other operation are made.
std::vector<RegressCase> cases_named(const std::string& part);

}  // namespace draftproof::regress
