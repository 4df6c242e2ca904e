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

// Those that have `part` in their name, in the order of the table of operations. Where
// part begins with an operation and a slash, the inputs of no other operation are made.
std::vector<RegressCase> cases_named(const std::string& part);

}  // namespace draftproof::regress
