// One mutant as a program: the regression with the kernels of one operation compiled from a text that has one fault
// (mutant.cpp.in puts them in the place of the sound ones).
// Exit code 0: the regression found it (killed); 1: it did not.
#include <algorithm>
#include <iostream>
#include <string>

#include "gpu/mutants/mutant.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/regression.hpp"

int main() {
  using namespace draftproof::regress;
  const std::string filter = draftproof::mutant_cases();
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
