// One fault as a program: the regression with the kernels of one operation compiled from a text that has one fault
// (fault.cpp.in puts them in the place of the sound ones).
//
//   <id>.run       the first case that finds it
//   <id>.run SEED  every case in this one order, a line of JSON for each (regress/fault_program.hpp)
//
// Exit code 0: the regression found it (killed); 1: it did not.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/strict_number.hpp"
#include "gpu/faults/fault.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/regression.hpp"
#include "gpu/regress/regression_json.hpp"

namespace {

using namespace draftproof::regress;

int print_every_case(std::uint64_t seed) {
  RegressionOptions options;
  options.seed = seed;
  bool killed = false;
  for (const RegressCase& one : cases_named(draftproof::fault_cases()))
    for (const CaseResult& result : run_case(one, options)) {
      killed |= result.verdict == Verdict::different;
      std::cout << to_json(result).dump(-1, ' ', true) << std::endl;
    }
  return killed ? 0 : 1;
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
  int ran = 0;
  // The order of blocks and threads may hide a race or another block's value once; three orders are tried.
  for (const std::uint64_t seed : {1, 2, 3}) {
    RegressionOptions options;
    options.seed = seed;
    for (const RegressCase& one : cases_named(filter)) {
      ++ran;
      for (const CaseResult& result : run_case(one, options)) {
        if (result.verdict != Verdict::different) continue;
        std::cout << result.name << ": " << result.finding.substr(0, result.finding.find("; run it again")) << '\n';
        return 0;
      }
    }
  }
  std::cout << "survived " << ran << " cases of " << filter << '\n';
  return 1;
}
