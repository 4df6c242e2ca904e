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

bool has_part(const std::string& name, const std::string& parts) {
  const std::vector<std::string> wanted = split(parts);
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

std::vector<std::string> operations_named(const std::string& parts) {
  const std::vector<std::string> wanted = split(parts);
  std::vector<std::string> names;
  for (const Operation& one : kOperations)
    if (std::any_of(wanted.begin(), wanted.end(), [&](const std::string& part) { return may_name(part, one); }))
      names.emplace_back(one.name);
  return names;
}

std::vector<RegressCase> cases_of(const std::string& operation, const std::string& parts) {
  const auto one = std::find_if(std::begin(kOperations), std::end(kOperations),
                                [&](const Operation& other) { return operation == other.name; });
  if (one == std::end(kOperations)) return {};
  std::vector<RegressCase> cases = one->cases();
  std::erase_if(cases, [&](const RegressCase& c) { return !has_part(c.name, parts); });
  return cases;
}

std::vector<RegressCase> cases_named(const std::string& parts) {
  std::vector<RegressCase> cases;
  for (const std::string& operation : operations_named(parts)) {
    std::vector<RegressCase> more = cases_of(operation, parts);
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

}  // namespace draftproof::regress
