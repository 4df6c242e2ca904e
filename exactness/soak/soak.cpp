#include "exactness/soak/soak.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "exactness/audit/tests.hpp"
#include "exactness/soak/chain_trials.hpp"
#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/e_process.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kTrialsOfSeed = std::int64_t{1} << 32;  // a trial is a step, a word of 32 bits
constexpr std::int64_t kTrialsOfTask = std::int64_t{1} << 20;
constexpr std::int64_t kTasksOfRound = 64;  // between two looks

void check(const SoakOptions& options) {
  if (options.trials < 1) throw usage_error("--trials", std::to_string(options.trials) + "; there must be 1 or more");
  if (options.threads < 1)
    throw usage_error("--threads", std::to_string(options.threads) + "; there must be 1 or more");
}

double acceptance_length_of(const ChainModel& model, const auto& weights) {
  double sum = 0.0;
  double total = 0.0;
  for (std::size_t cell = 0; cell < weights.size(); ++cell) {
    const auto weight = static_cast<double>(weights[cell]);
    if (weight > 0.0) sum += weight * static_cast<double>(model.tokens_of(cell).size());
    total += weight;
  }
  return sum / total;
}

}  // namespace

bool SoakResult::consistent() const {
  return !refuted_on_the_way &&
         std::none_of(tests.begin(), tests.end(), [](const TestResult& test) { return test.rejects; });
}

std::string SoakResult::sentence() const {
  if (!consistent()) return "biased";
  return "consistent: a total variation distance of " + short_number(detectable_distance(tests)) +
         " would have been found with 99 % probability";
}

SoakResult soak(const SoakOptions& options, const std::function<void(std::int64_t)>& done) {
  check(options);
  const ChainModel model(options.vocab_size, options.draft_len, options.kind, options.seed);
  const ChainTables tables(model);
  const std::vector<double> distribution = model.emitted_distribution();
  SoakResult result;
  result.cells = std::count_if(distribution.begin(), distribution.end(), [](double p) { return p > 0.0; });
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::int64_t> counts(distribution.size(), 0);
  std::vector<std::vector<std::uint64_t>> of_thread(static_cast<std::size_t>(options.threads));
  while (result.trials < options.trials && !result.refuted_on_the_way) {
    const std::int64_t first = result.trials;
    const std::int64_t round = std::min(options.trials - first, kTrialsOfTask * kTasksOfRound);
    for (auto& own : of_thread) own.assign(distribution.size(), 0);
    parallel_for((round + kTrialsOfTask - 1) / kTrialsOfTask, options.threads, [&](std::int64_t task, int thread) {
      const std::int64_t begin = first + task * kTrialsOfTask;  // tasks never straddle two seeds
      const std::int64_t count = std::min(kTrialsOfTask, first + round - begin);
      const std::uint64_t seed = derive_seed(options.seed, static_cast<std::uint64_t>(begin / kTrialsOfSeed));
      chain_trials()(tables, seed, static_cast<std::uint32_t>(begin % kTrialsOfSeed), static_cast<std::uint64_t>(count),
                     of_thread[static_cast<std::size_t>(thread)]);
      if (done) done(count);
    });
    for (const auto& own : of_thread)
      for (std::size_t cell = 0; cell < own.size(); ++cell) counts[cell] += static_cast<std::int64_t>(own[cell]);
    result.trials += round;
    if (std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) != result.trials)
      throw Error(ErrorKind::internal, "soak", "the counts of strings do not add up to the trials");
    const double log_wealth = dirichlet_log_wealth(counts, distribution, static_cast<double>(result.cells));
    result.looks.push_back({result.trials, log_wealth / std::numbers::ln10});
    result.refuted_on_the_way = log_wealth >= -std::log(options.alpha);
  }
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  result.acceptance_length = acceptance_length_of(model, counts);
  result.acceptance_length_expected = acceptance_length_of(model, distribution);
  const auto cell_of = [&](std::size_t cell) {
    CountedCell named;
    const std::vector<Token> tokens = model.tokens_of(cell);
    for (std::size_t i = 0; i < tokens.size(); ++i) named.keys.emplace_back("token " + std::to_string(i), tokens[i]);
    return named;
  };
  result.tests = count_tests("emitted_strings", "trials", fit_counts(counts, distribution, cell_of), true);
  std::int64_t impossible = 0;
  for (std::size_t cell = 0; cell < distribution.size(); ++cell)
    impossible += distribution[cell] > 0.0 ? 0 : counts[cell];
  result.tests.push_back(certainty_test("impossible_strings", "trials", result.trials, impossible, {}));
  judge(result.tests, options.alpha);
  return result;
}

}  // namespace draftproof
