// What an audit says of one of its tests.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "exactness/audit/audit.hpp"

namespace draftproof::testing {

// The test of that name, null where the audit has none.
inline const TestResult* find(const Audit& audit, const std::string& name) {
  const auto found =
      std::find_if(audit.tests.begin(), audit.tests.end(), [&](const TestResult& test) { return test.name == name; });
  return found == audit.tests.end() ? nullptr : &*found;
}

inline const TestResult& test_of(const Audit& audit, const std::string& name) {
  const TestResult* const test = find(audit, name);
  INFO(name);
  REQUIRE(test != nullptr);
  return *test;
}

inline bool rejects(const Audit& audit, const std::string& name) {
  const TestResult& test = test_of(audit, name);
  UNSCOPED_INFO(test.sentence << " (estimated " << test.estimated_tv << ", detectable " << test.detectable_tv << ")");
  return test.rejects;
}

}  // namespace draftproof::testing
