// Tests that are judged together, under one budget of false alarms.
//
// A file that is audited has its own budget, alpha: Holm's correction over its tests keeps the probability that any of
// them accuses a correct sampler below alpha, however the tests depend on one another.
//
// The test suite has a budget too: kSuiteFalseAlarms for one run of all tests of this project, should all their seeds
// be new. A statistical test case takes suite_level(k) as the level of each of its k decisions, that is, Bonferroni
// with the fixed count kSuiteCases of statistical cases, of which there must never be more; there are about 60,
// controls included. (Seeds are fixed in the suite, so that it gives the same answer each time; the budget is what a
// change of seeds or of code that draws costs.)
#pragma once

#include <string>
#include <vector>

#include "exactness/statistics/test_result.hpp"

namespace draftproof {

inline constexpr double kSuiteFalseAlarms = 1e-6;
inline constexpr int kSuiteCases = 200;

constexpr double suite_level(int decisions = 1) {
  return kSuiteFalseAlarms / kSuiteCases / decisions;
}

inline constexpr double kStatedPower = 0.99;  // at which detectable distances are stated

// Judges the tests at family level `alpha`: fills in alpha, p_value_holm, detectable_tv, rejects and sentence.
// Distances are those that a test would find alone at alpha / m, the level of Holm's first step, with probability
// kStatedPower.
void judge(std::vector<TestResult>& tests, double alpha);

// The smallest detectable distance over the tests that cover all faults; 1 where there is none.
double detectable_distance(const std::vector<TestResult>& tests);

// A number for people: three significant digits.
std::string short_number(double value);
// "1 test", "12 tests".
std::string tests_in_words(std::size_t tests);

}  // namespace draftproof
