// Result of a statistical test: a number of observations, a statistic, a p value before and after the correction for
// its companions, the fault it could have found, the fault it did find, and all that as a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace draftproof {

// The distribution that a statistic has under the null, which also says how its power is computed.
enum class NullDistribution {
  chi_squared,  // detectable distance: whatever the fault looks like (chi_squared.hpp)
  kolmogorov,   // detectable distance: of faults that move mass along the order of the values (kolmogorov_smirnov.hpp)
  certainty,    // the event has probability 0: detectable is the probability that would have shown once
  tail,         // of a sum of unequal terms: p is exact for counts, or a bound from above (tail_bounds.hpp)
  union_bound,  // p is a sum of probabilities of what was seen, and of what might have been instead: an upper bound
};

// One cell with its observed and expected count. Keys say which it is: {"group", 3}, {"token", 17}.
struct CountedCell {
  std::vector<std::pair<std::string, std::int64_t>> keys;
  double observed = 0.0;
  double expected = 0.0;

  std::string label() const;  // "group 3, token 17"
};

// How far a count is from its expectation: the deviance 2 (O ln(O / E) - (O - E)) of a Poisson count; infinite for an
// observation where nothing is expected. It ranks rare and common cells fairly.
double surprise(const CountedCell& cell);

inline constexpr std::size_t kWorstCellsMax = 10;

// Keeps the most surprising cells, first the worst; ties in the order they came.
void keep_worst(std::vector<CountedCell>& cells);

struct TestResult {
  std::string name;            // "tokens"
  std::string statistic_name;  // "Pearson X^2"
  std::string unit;            // what is counted: "draws"
  NullDistribution null_distribution = NullDistribution::chi_squared;
  std::int64_t n = 0;
  std::optional<std::int64_t> df;  // of chi-squared distributions
  double statistic = 0.0;
  double p_value = 1.0;
  double estimated_tv = 0.0;  // see each test for what it is a distance between, and how it is corrected
  std::vector<CountedCell> worst_cells;
  // Does detectable_tv hold for every fault of the distribution that the file was made to show? (Not for a test of a
  // part.)
  bool covers_all = false;
  bool is_correlation = false;  // distances are those of pairs from independence, and say nothing of the marginals

  // Set by the battery that the test belongs to (battery.hpp).
  double alpha = 0.0;  // of the whole battery
  double p_value_holm = 1.0;
  double detectable_tv = 1.0;
  bool rejects = false;
  std::string sentence;
};

// The test with the smallest p value of those that have cells to show; null where there is none.
const TestResult* worst_test(std::span<const TestResult> tests);

}  // namespace draftproof
