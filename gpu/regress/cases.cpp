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

std::vector<std::string> split(const std::string& parts) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= parts.size();) {
    const std::size_t end = std::min(parts.find(',', begin), parts.size());
    all.push_back(parts.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

// Can a case of this operation have the part in its name?
bool may_name(const std::string& part, const Operation& operation) {
  const std::string first = part.substr(0, part.find('/'));
  if (first.size() == part.size()) return true;
  const bool names_one = std::any_of(std::begin(kOperations), std::end(kOperations),
                                     [&](const Operation& other) { return first == other.name; });
  return !names_one || first == operation.name;
}

}  // namespace

std::vector<RegressCase> cases_named(const std::string& parts) {
  const std::vector<std::string> wanted = split(parts);
  std::vector<RegressCase> cases;
  for (const Operation& one : kOperations) {
    if (std::none_of(wanted.begin(), wanted.end(), [&](const std::string& part) { return may_name(part, one); }))
      continue;
    std::vector<RegressCase> more = one.cases();
    std::erase_if(more, [&](const RegressCase& c) {
      return std::none_of(wanted.begin(), wanted.end(),
                          [&](const std::string& part) { return c.name.find(part) != std::string::npos; });
    });
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

}  // namespace draftproof::regress
