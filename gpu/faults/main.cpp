// One fault as a program: the regression with the kernels of one operation compiled from a text that has one fault
// (fault.cpp.in puts them in the place of the sound ones).
//
//   <id>.run       the first case that finds it, else the first random call
//   <id>.run SEED  every case in this one order, a line of JSON for each (regress/fault_program.hpp); random calls
//                  only where no case finds it
//
// Exit code 0: the regression found it (killed); 1: it did not.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/strict_number.hpp"
#include "gpu/faults/fault.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/random_calls.hpp"
#include "gpu/regress/regression.hpp"
#include "gpu/regress/regression_json.hpp"

namespace {

using namespace draftproof::regress;

// Random calls of the fault's operation.
std::vector<RegressCase> random_calls_of(const std::string& cases) {
  const std::string operation = cases.substr(0, cases.find('/') + 1);
  std::vector<RegressCase> calls = random_calls(1800, 0);
  std::erase_if(calls, [&](const RegressCase& call) { return !call.name.starts_with(operation); });
  return calls;
}

bool print_results(const std::vector<RegressCase>& cases, std::uint64_t seed) {
  RegressionOptions options;
  options.seed = seed;
  bool killed = false;
  for (const RegressCase& one : cases)
    for (const CaseResult& result : run_case(one, options)) {
      killed |= result.verdict == Verdict::different;
      std::cout << to_json(result).dump(-1, ' ', true) << std::endl;
    }
  return killed;
}

int print_every_case(std::uint64_t seed) {
  const std::string cases = draftproof::fault_cases();
  return print_results(cases_named(cases), seed) || print_results(random_calls_of(cases), seed) ? 0 : 1;
}

// Runs the cases until one finds the fault.
bool is_killed_by(const std::vector<RegressCase>& cases, std::uint64_t seed) {
  RegressionOptions options;
  options.seed = seed;
  for (const RegressCase& one : cases) {
    for (const CaseResult& result : run_case(one, options)) {
      if (result.verdict != Verdict::different) continue;
      std::cout << result.name << ": " << result.finding.substr(0, result.finding.find("; run it again")) << '\n';
      return true;
    }
  }
  return false;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count > 1) {
    const auto seed = draftproof::read_unsigned(arguments[1]);
    if (seed) return print_every_case(*seed);
    std::cerr << arguments[0] << ": the seed is '" << arguments[1] << "'; expected a whole number\n";
    return 2;
  }
  const std::string filter = draftproof::fault_cases();
  // The order of blocks and threads may hide a race or another block's value once; three orders are tried.
  for (const std::uint64_t seed : {1, 2, 3})
    if (is_killed_by(cases_named(filter), seed)) return 0;
  if (is_killed_by(random_calls_of(filter), 1)) return 0;
  std::cout << "survived the cases of " << filter << " and random calls\n";
  return 1;
}
