#include "exactness/audit/tests.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/chi_squared.hpp"
#include "exactness/statistics/kolmogorov_smirnov.hpp"
#include "reference/step/dense_step_rows.hpp"

namespace draftproof {

std::vector<double> normalised_distribution(const Distribution& distribution) {
  std::vector<double> masses = dense_row(distribution);
  double sum = 0.0;
  for (const double p : masses) sum += p;
  if (!(sum > 0.0)) throw input_error("a row of probabilities", "is zero everywhere; it must sum to 1");
  for (double& p : masses) p /= sum;
  return masses;
}

bool is_one_hot(std::span<const double> distribution) {
  return std::count_if(distribution.begin(), distribution.end(), [](double p) { return p > 0.0; }) == 1;
}

double mean_absolute_deviation(double variance) {
  return std::sqrt(variance * 0.63661977236758134);  // 2 / pi
}

void CountFit::add(CountFit other) {
  n += other.n;
  df += other.df;
  pearson += other.pearson;
  g += other.g;
  distance += other.distance;
  std::move(other.worst_cells.begin(), other.worst_cells.end(), std::back_inserter(worst_cells));
  keep_worst(worst_cells);
}

CountFit fit_counts(std::span<const std::int64_t> counts, std::span<const double> distribution,
                    const std::function<CountedCell(std::size_t)>& cell_of) {
  // Observations that the distribution forbids are another test's business; the rest must follow the distribution given
  // that.
  std::int64_t n = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) n += distribution[i] > 0.0 ? counts[i] : 0;
  std::vector<double> expected(distribution.size());
  for (std::size_t i = 0; i < distribution.size(); ++i) expected[i] = static_cast<double>(n) * distribution[i];
  const PooledCells pools(expected, kExpectedCountMinOfAudits);
  CountFit fit;
  if (pools.size() < 2) return fit;
  const std::vector<PoolCount> pooled = pool_counts(pools, counts, expected);
  fit.n = n;
  fit.df = static_cast<std::int64_t>(pools.size()) - 1;
  fit.pearson = pearson_statistic(pooled);
  fit.g = g_statistic(pooled) / williams_divisor(pooled);
  for (const PoolCount& c : pooled) {
    const double variance = c.expected * (1.0 - c.expected / static_cast<double>(n));
    fit.distance += (std::abs(c.observed - c.expected) - mean_absolute_deviation(variance)) / 2.0;
  }
  // Only the worst are worth a name.
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (expected[i] > 0.0) ranked.emplace_back(-surprise({{}, static_cast<double>(counts[i]), expected[i]}), i);
  }
  const std::size_t kept = std::min(ranked.size(), kWorstCellsMax);
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept), ranked.end());
  for (std::size_t i = 0; i < kept; ++i) {
    CountedCell cell = cell_of(ranked[i].second);
    cell.observed = static_cast<double>(counts[ranked[i].second]);
    cell.expected = expected[ranked[i].second];
    fit.worst_cells.push_back(std::move(cell));
  }
  return fit;
}

std::vector<TestResult> count_tests(const std::string& name, const std::string& unit, const CountFit& fit,
                                    bool covers_all) {
  if (fit.df == 0) return {};
  TestResult pearson;
  pearson.name = name;
  pearson.statistic_name = "Pearson X^2";
  pearson.unit = unit;
  pearson.n = fit.n;
  pearson.df = fit.df;
  pearson.statistic = fit.pearson;
  pearson.p_value = chi_squared_p_value(fit.pearson, fit.df);
  pearson.estimated_tv = std::max(0.0, fit.distance / static_cast<double>(fit.n));
  pearson.worst_cells = fit.worst_cells;
  pearson.covers_all = covers_all;
  TestResult likelihood = pearson;
  likelihood.name += "_g";
  likelihood.statistic_name = "G (Williams)";
  likelihood.statistic = fit.g;
  likelihood.p_value = chi_squared_p_value(fit.g, fit.df);
  return {std::move(pearson), std::move(likelihood)};
}

std::size_t affordable_bins(std::int64_t n, std::size_t bins_max) {
  std::size_t bins = bins_max;
  while (bins > 1 && static_cast<double>(n) < kExpectedCountMinOfAudits * static_cast<double>(bins)) bins /= 2;
  return bins;
}

std::vector<TestResult> uniformity_tests(const std::string& name, const std::string& unit, const UniformTally& tally,
                                         bool covers_all) {
  const std::size_t bins = affordable_bins(tally.n(), 16);
  if (bins < 2) return {};
  const std::vector<std::int64_t> counts = tally.binned(bins);
  const CountFit fit =
      fit_counts(counts, std::vector<double>(bins, 1.0 / static_cast<double>(bins)), [](std::size_t bin) {
        return CountedCell{{{"bin", static_cast<std::int64_t>(bin)}}};
      });
  TestResult in_bins = count_tests(name + "_bins", unit, fit, covers_all).front();

  TestResult kolmogorov;
  kolmogorov.name = name + "_ks";
  kolmogorov.statistic_name = "Kolmogorov-Smirnov D";
  kolmogorov.unit = unit;
  kolmogorov.null_distribution = NullDistribution::kolmogorov;
  kolmogorov.n = tally.n();
  kolmogorov.statistic = tally.distance();
  kolmogorov.p_value = kolmogorov_p_value(tally.n(), kolmogorov.statistic);
  // The mean of D under the null is 0.8687 / sqrt n.
  const double chance = 0.8687 / std::sqrt(static_cast<double>(tally.n()));
  kolmogorov.estimated_tv = std::max(0.0, kolmogorov.statistic - chance);
  kolmogorov.worst_cells = fit.worst_cells;
  return {std::move(kolmogorov), std::move(in_bins)};
}

TestResult certainty_test(const std::string& name, const std::string& unit, std::int64_t n, std::int64_t count,
                          std::vector<CountedCell> cells) {
  TestResult test;
  test.name = name;
  test.statistic_name = "count";
  test.unit = unit;
  test.null_distribution = NullDistribution::certainty;
  test.n = n;
  test.statistic = static_cast<double>(count);
  test.p_value = count > 0 ? 0.0 : 1.0;
  test.estimated_tv = n > 0 ? static_cast<double>(count) / static_cast<double>(n) : 0.0;
  test.worst_cells = std::move(cells);
  return test;
}

std::vector<TestResult> event_tests(const std::string& name, const std::string& unit, std::span<const EventDraws> draws,
                                    std::int64_t seen, bool too_few_alone) {
  const double expected = expected_events(draws);
  if (!(expected > 0.0) || (too_few_alone && expected < 1.0)) return {};
  TestResult test;
  test.name = name;
  test.statistic_name = "count";
  test.unit = unit;
  test.null_distribution = NullDistribution::tail;
  for (const EventDraws& d : draws) test.n += d.draws;
  test.statistic = static_cast<double>(seen);
  const double few = at_most(draws, seen);
  test.p_value = too_few_alone ? few : std::min(1.0, 2.0 * std::min(few, at_least(draws, seen)));
  test.estimated_tv = std::abs(test.statistic - expected) / static_cast<double>(test.n);
  test.worst_cells = {{{{"groups", static_cast<std::int64_t>(draws.size())}}, test.statistic, expected}};
  return {std::move(test)};
}

std::vector<TestResult> score_tests(const std::string& unit, std::int64_t n, double score,
                                    const std::function<TiltedSum(double)>& at) {
  const double variance = at(0.0).variance;
  if (!(variance > 0.0)) return {};
  TestResult test;
  test.name = "score";
  test.statistic_name = "z";
  test.unit = unit;
  test.null_distribution = NullDistribution::tail;
  test.n = n;
  test.statistic = score / std::sqrt(variance);
  test.p_value = std::min(1.0, 2.0 * tail_bound(score, at));
  return {std::move(test)};
}

std::vector<TestResult> malformed_tests(const std::string& unit, const char* index_name, std::int64_t n,
                                        const MalformedOutputs& malformed) {
  if (malformed.count == 0) return {};
  std::vector<CountedCell> cells;
  for (const MalformedOutput& output : malformed.first) cells.push_back({{{index_name, output.index}}, 1.0, 0.0});
  const std::int64_t every = n + malformed.count - malformed.kept;
  return {certainty_test("well_formed", unit, every, malformed.count, std::move(cells))};
}

void append(std::vector<TestResult>& tests, std::vector<TestResult> more) {
  std::move(more.begin(), more.end(), std::back_inserter(tests));
}

std::string name_of(AuditVerdict verdict) {
  constexpr std::array kNames{"consistent", "biased", "inconclusive"};
  return kNames[static_cast<std::size_t>(verdict)];
}

namespace {

// Which strings were counted, and at which distance: a verifier may be right in the first token and wrong in the third.
std::string depth_text(const Audit& audit) {
  if (audit.string_tokens_max < 2) return "";
  if (audit.string_tokens < 2) return " of the first token";
  return " of the first token, and of " + short_number(audit.string_detectable_tv) + " of completed strings of " +
         std::to_string(audit.string_tokens) + " tokens,";
}

std::string untested_text(const Audit& audit) {
  if (audit.string_tokens >= audit.string_tokens_max) return "";
  return "; strings of " + (audit.string_tokens_max - audit.string_tokens > 1 ? "up to " : std::string()) +
         std::to_string(audit.string_tokens_max) +
         " tokens, which a step can emit, were not counted, as too few steps " + "share a context";
}

}  // namespace

void conclude(Audit& audit, const AuditOptions& options) {
  audit.alpha = options.alpha;
  audit.tv_wanted = options.tv_wanted;
  judge(audit.tests, options.alpha);
  audit.detectable_tv = detectable_distance(audit.tests);
  if (audit.score_deviation > 0.0) {
    const boost::math::normal normal;
    const double level = options.alpha / static_cast<double>(2 * audit.tests.size());
    audit.detectable_temperature =
        (quantile(complement(normal, level)) + quantile(normal, kStatedPower)) / audit.score_deviation;
  }
  const std::string longest =
      audit.string_tokens > 2 ? "string_" + std::to_string(audit.string_tokens) : std::string("string");
  for (const TestResult& test : audit.tests)
    if (test.name == longest) audit.string_detectable_tv = test.detectable_tv;
  // Where draws are correlated, tests of the distribution, which take them for independent, say little: a correlation
  // is what is reported then.
  const auto rank = [](const TestResult& test) {
    return std::pair(!(test.is_correlation && test.rejects), test.p_value);
  };
  const auto worst = std::min_element(audit.tests.begin(), audit.tests.end(),
                                      [&](const TestResult& a, const TestResult& b) { return rank(a) < rank(b); });
  const std::string over = tests_in_words(audit.tests.size()) + " at level " + short_number(options.alpha);
  if (worst != audit.tests.end() && worst->rejects) {
    audit.verdict = AuditVerdict::biased;
    audit.sentence = "biased (" + over + "): " + worst->sentence;
  } else if (!audit.lossless && audit.observations > 0 && audit.tests.empty()) {
    audit.verdict = AuditVerdict::inconclusive;
    audit.sentence = "no answer: the verifier is lossy, and these steps hold nothing of it that could be tested";
  } else if (!audit.lossless && audit.observations > 0) {
    audit.verdict = AuditVerdict::consistent;
    audit.sentence = "consistent (" + over +
                     ") with a lossy verifier: nothing impossible was found; its distribution "
                     "is not the target's and was not tested";
  } else if (audit.detectable_tv > options.tv_wanted) {
    audit.verdict = AuditVerdict::inconclusive;
    audit.sentence = "too few samples (" + over + "): nothing found, but " +
                     (audit.detectable_tv < 1.0
                          ? "only a total variation distance above " + short_number(audit.detectable_tv) + " would"
                          : std::string("no total variation distance, however large, would")) +
                     " have been found with 99 % probability; " + short_number(options.tv_wanted) + " was wanted";
  } else {
    audit.verdict = AuditVerdict::consistent;
    audit.sentence = "consistent (" + over + "): nothing found; a total variation distance of " +
                     short_number(audit.detectable_tv) + depth_text(audit) +
                     " would have been found with 99 % probability" + untested_text(audit);
  }
}

void note_malformed(Audit& audit, const MalformedOutputs& malformed) {
  if (malformed.count > 0) audit.sentence += ": " + malformed.first.front().what;
}

}  // namespace draftproof
