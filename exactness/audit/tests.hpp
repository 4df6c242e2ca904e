// Parts that the audits of draws and of steps share: fits of counts to distributions, group by group, and of uniform
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "exactness/audit/audit.hpp"
#include "exactness/statistics/probability_transform.hpp"
#include "exactness/statistics/tail_bounds.hpp"
#include "exactness/statistics/test_result.hpp"
#include "reference/sampling/distribution.hpp"

namespace draftproof {

// The probabilities [V] of a row, summing to 1 within rounding.
std::vector<double> normalised_distribution(const Distribution& distribution);

// A distribution that leaves no choice says nothing about a sampler beyond its support.
bool is_one_hot(std::span<const double> distribution);

// E|O - E| for a count of this variance that is not small.
double mean_absolute_deviation(double variance);

// The fit of counts to one distribution, and sums of such fits over groups: independent statistics add, and so do their
// degrees of freedom.
struct CountFit {
  std::int64_t n = 0;  // of the groups that are large enough to have a degree of freedom
  std::int64_t df = 0;
  double pearson = 0.0;
  double g = 0.0;         // each group's G divided by its Williams divisor
  double distance = 0.0;  // sum over pools of |O - E| / 2, less what chance alone gives
  std::vector<CountedCell> worst_cells;

  void add(CountFit other);
};

// counts and distribution over the same cells; cell_of(i) names cell i for worst_cells.
CountFit fit_counts(std::span<const std::int64_t> counts, std::span<const double> distribution,
                    const std::function<CountedCell(std::size_t)>& cell_of);

// The Pearson test and the G test of a fit; nothing where it has no degree of freedom. estimated_tv is the plug-in
// distance over the pooled cells less its expectation under the null, averaged over observations and cut at 0: unbiased
// for a right sampler, exact for faults well above the noise, too small in between.
std::vector<TestResult> count_tests(const std::string& name, const std::string& unit, const CountFit& fit,
                                    bool covers_all);

// Numbers that should be uniform: the Kolmogorov-Smirnov test (name) and Pearson's over up to 16 bins (name + "_bins").
// Nothing for fewer than 50.
std::vector<TestResult> uniformity_tests(const std::string& name, const std::string& unit, const UniformTally& tally,
                                         bool covers_all);

// The largest power of two of bins, at most `bins_max`, that expect kExpectedCountMinOfAudits of n each; at least 1.
std::size_t affordable_bins(std::int64_t n, std::size_t bins_max);

// A test of an event that cannot happen: `count` of `n` observations are of it.
TestResult certainty_test(const std::string& name, const std::string& unit, std::int64_t n, std::int64_t count,
                          std::vector<CountedCell> cells);

// A test of how often an event was seen: two-sided, or of too few alone. Nothing where none is expected, or, of too few
// alone, where less than one is.
std::vector<TestResult> event_tests(const std::string& name, const std::string& unit, std::span<const EventDraws> draws,
                                    std::int64_t seen, bool too_few_alone);

// Below it a variance of ln p is the rounding of a flat distribution.
inline constexpr double kFlatVariance = 1e-12;

// `score`: are drawn tokens as probable as the distributions say? z = sum (ln p(x) - E ln p) / sqrt(sum Var ln p) over
// `n` draws, whose sum is `score`; at(tilt) gives the tilted sum. Nothing where the distributions are flat.
std::vector<TestResult> score_tests(const std::string& unit, std::int64_t n, double score,
                                    const std::function<TiltedSum(double)>& at);

// A test of outputs that no sampler may put out (`well_formed`); nothing where there is none.
std::vector<TestResult> malformed_tests(const std::string& unit, const char* index_name, std::int64_t n,
                                        const MalformedOutputs& malformed);

void append(std::vector<TestResult>& tests, std::vector<TestResult> more);

// Judges the tests and comes to a verdict.
void conclude(Audit& audit, const AuditOptions& options);
// Adds to the sentence what the first malformed output was.
void note_malformed(Audit& audit, const MalformedOutputs& malformed);

}  // namespace draftproof
