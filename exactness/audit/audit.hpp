// The audit of somebody else's sampler: is what it drew a sample of the distribution it should have drawn from?
//
// Every test is exact or stated to be conservative under the null that the sampler is right, whether requests share
// their rows or each has its own; what the tests are and which sampler they hold for is in docs/audit.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exactness/audit/assumptions.hpp"
#include "exactness/audit/audit_sample.hpp"
#include "exactness/statistics/binomial_interval.hpp"
#include "exactness/statistics/test_result.hpp"

namespace draftproof {

struct AuditOptions {
  double alpha = 1e-6;      // false alarms of the whole audit
  double tv_wanted = 0.05;  // a total variation distance that the audit should have been able to find
  AssumedVerifier verifier = VerifierChoice(Verifier::chain);  // that emitted the steps
  std::uint64_t seed = 0;  // of the numbers that spread discrete draws over an interval (probability_transform.hpp)
  int threads = 1;         // no result depends on it
};

enum class AuditVerdict : std::uint8_t { consistent, biased, inconclusive };
std::string name_of(AuditVerdict verdict);

// Acceptance of draft position j of the chain verifier.
struct PositionAudit {
  std::int64_t reached = 0;  // requests that have such a draft and accepted all before it
  std::int64_t accepted = 0;
  Interval interval;              // Clopper-Pearson, 99 %
  double expected_rate = 0.0;     // mean of min(1, p/q) over the drafts reached
  double expected_by_rows = 0.0;  // mean of sum_x min(p, q) over the rows reached: also averaged over the draft

  double rate() const { return static_cast<double>(accepted) / static_cast<double>(reached); }
};

struct Audit {
  AuditVerdict verdict = AuditVerdict::consistent;
  std::string sentence;
  double alpha = 0.0;
  double tv_wanted = 0.0;
  double detectable_tv = 1.0;  // smallest of the tests that cover the whole distribution
  // Single draws: standard deviation of the sum of the score test (sum of Var ln p), and the relative change of the
  // temperature that it finds with probability 99 %. 0 and absent where there is no such test.
  double score_deviation = 0.0;
  std::optional<double> detectable_temperature;
  // Steps: tokens of the longest completed strings that were counted, of how many a step can emit, and the smallest
  // distance that the test of them could find. 1 where nothing beyond the first token was counted.
  std::uint32_t string_tokens = 1;
  std::uint32_t string_tokens_max = 1;
  double string_detectable_tv = 1.0;
  bool lossless = true;  // the verifier is said to be; of a lossy one nothing is known of the distribution
  std::int64_t observations = 0;
  std::int64_t groups = 0;
  std::int64_t vocab_size = 0;
  std::vector<TestResult> tests;
  std::vector<PositionAudit> positions;  // of steps of the token chain
  std::vector<std::string> fits;         // verifiers under which nothing is found (note_fitting_verifiers)
  // Single draws: log10 of the e-process against the distribution (e_process.hpp), an anytime-valid test: it may be
  // looked at as often as one likes while a sample grows, which p values may not. Absent where a token of probability 0
  // made it infinite.
  std::optional<double> anytime_log10_wealth;
};

// Errors are those of processing the rows (input), and of a verifier that does not take the drafts (usage). A sample
// without observations is inconclusive.
Audit audit_draws(const DrawSample& sample, const AuditOptions& options);
Audit audit_steps(const StepSample& sample, const AuditOptions& options);

}  // namespace draftproof
