// All regression cases, by operation.
#pragma once

#include <string>
#include <vector>

#include "gpu/operation_table.hpp"
#include "gpu/regress/case.hpp"

namespace draftproof::regress {

// <name>_cases() of each operation.
#define DRAFTPROOF_DECLARE_CASES(name, Arguments) std::vector<RegressCase> name##_cases();
DRAFTPROOF_OPERATIONS(DRAFTPROOF_DECLARE_CASES, DRAFTPROOF_DECLARE_CASES)
#undef DRAFTPROOF_DECLARE_CASES

// Outputs and workspace of a call whose other arguments are set, and the call itself.
void run_mass_pass(CaseRun& run, draftproof_mass_pass_arguments arguments);
void run_logprobs(CaseRun& run, draftproof_logprobs_arguments arguments);

// Those that have `part` in their name, or one of several parts "a,b,c", in the order of the table of operations. Where
// a part begins with an operation and a slash, it makes the inputs of no other operation.
std::vector<RegressCase> cases_named(const std::string& parts);
// Does a name have `part` in it, or one of several parts "a,b,c"?
bool has_part(const std::string& name, const std::string& parts);
// The operations whose inputs that makes, and those cases of one of them.
std::vector<std::string> operations_named(const std::string& parts);
std::vector<RegressCase> cases_of(const std::string& operation, const std::string& parts);

}  // namespace draftproof::regress
