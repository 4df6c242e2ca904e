// Lookup of one test's result in an audit.
#pragma once

#include "exactness/audit/audit.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

// The test of that name, null where there is none.
inline const TestResult* find(const std::vector<TestResult>& tests, const std::string& name) {
  const auto found = std::ranges::find(tests, name, &TestResult::name);
  return found == tests.end() ? nullptr : &*found;
}
inline const TestResult* find(const Audit& audit, const std::string& name) {
  return find(audit.tests, name);
}

inline const TestResult& test_of(const std::vector<TestResult>& tests, const std::string& name) {
  const TestResult* const test = find(tests, name);
  INFO(name);
  REQUIRE(test != nullptr);
  return *test;
}
inline const TestResult& test_of(const Audit& audit, const std::string& name) {
  return test_of(audit.tests, name);
}

inline bool rejects(const Audit& audit, const std::string& name) {
  const TestResult& test = test_of(audit, name);
  UNSCOPED_INFO(test.sentence << " (estimated " << test.estimated_tv << ", detectable " << test.detectable_tv << ")");
  return test.rejects;
}

// Names of the tests that reject.
inline std::set<std::string> rejecting(const std::vector<TestResult>& tests) {
  std::set<std::string> names;
  for (const TestResult& test : tests)
    if (test.rejects) names.insert(test.name);
  return names;
}

}  // namespace draftproof::testing
