#include "gpu/regress/cases.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace draftproof::regress {
namespace {

struct Operation {
  const char* name;
  std::vector<RegressCase> (*cases)();
};

#define DRAFTPROOF_CASES(name, Arguments) Operation{#name, name##_cases},
constexpr Operation kOperations[] = {DRAFTPROOF_OPERATIONS(DRAFTPROOF_CASES, DRAFTPROOF_CASES)};

}  // namespace

std::vector<RegressCase> cases_named(const std::string& part) {
  const std::string operation = part.substr(0, part.find('/'));
  const bool names_one =
      operation.size() < part.size() && std::any_of(std::begin(kOperations), std::end(kOperations),
                                                    [&](const Operation& one) { return operation == one.name; });
  std::vector<RegressCase> cases;
  for (const Operation& one : kOperations) {
    if (names_one && operation != one.name) continue;
    std::vector<RegressCase> more = one.cases();
    std::erase_if(more, [&](const RegressCase& c) { return c.name.find(part) == std::string::npos; });
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

}  // namespace draftproof::regress
