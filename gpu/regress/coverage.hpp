// What the cases of the regression show of the arguments of every call: which values each has taken, and which two
// values of two arguments have met in one case.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gpu/regress/case.hpp"

namespace draftproof::regress {

struct CallCoverage {
  std::string call;
  std::int64_t cases = 0;
  std::int64_t arguments = 0, beyond_default = 0;  // arguments, and those that some case gives another value
  std::int64_t pairs = 0, pairs_met = 0;           // of values of two arguments that can stand together
  std::vector<std::string> missing;                // in words, in the order of the arguments
};

// Makes the inputs of the cases, and runs none.
std::vector<CallCoverage> coverage_of(const std::vector<RegressCase>& cases);

// The arguments of one case.
std::vector<CallArguments> arguments_of(const RegressCase& one);

}  // namespace draftproof::regress
