// One verification step under the distributions that it should follow: each token, draft and decision as a number whose
// distribution is known whatever the rows were. Nothing of the rows themselves is kept, so that a file of any size can
// be audited.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "exactness/audit/assumptions.hpp"
#include "exactness/audit/audit_sample.hpp"
#include "exactness/audit/own_decisions.hpp"
#include "reference/step/step_rows.hpp"

namespace draftproof {

// Not a number that a transform can have: there is nothing to transform.
inline constexpr double kNoTransform = -1.0;

using DistributionDigest = std::array<std::uint64_t, 2>;  // the first half of the SHA-256 of a distribution

// A draft of a chain, as its verifier decides on it.
struct DraftRecord {
  double ratio = 1.0;          // p/q of the draft token
  double accept_by_row = 1.0;  // sum_x min(p, q)
};

// A path of drafts, and the row after it.
struct NextRow {
  std::vector<Token> path;
  std::uint32_t row;
  DistributionDigest distribution;
  double drafted;  // probability that the first drafts are this path, where it is known how they were drawn; else 0
};

// Rows after longer paths are noted where the vocabulary is small enough for strings of several tokens to be counted.
inline constexpr std::int64_t kDeepVocabMax = 4096;
inline constexpr std::size_t kStringTokensMax = 8;

struct StepRecord {
  // [tau + 1] transforms of the emitted tokens under the target rows along their path. None where the token is
  // impossible or the row leaves no choice.
  std::vector<double> emitted;
  std::uint32_t depth_max = 0;         // of the draft: the step could emit one token more
  std::uint32_t first_path_depth = 0;  // of the drafts reached by first children alone
  bool first_row_has_choice = false;
  std::vector<DraftRecord> drafts;  // [K] of a chain under Assumptions::chain_decisions
  std::vector<double> drafted;      // transforms of the drafts that were drawn, where q leaves a choice
  std::uint32_t accepted = 0;
  // If Assumptions::decides: what the step shows of the verifier's decisions, and the distribution of the number
  // accepted [K + 1], empty where it is not known.
  std::vector<Decision> decisions;
  std::vector<double> accepted_distribution;
  // Transform of the last token under what it was drawn from: the residual distribution, or p for a bonus token. Of
  // chain_decisions and decides.
  double last = kNoTransform;
  // Transforms of the first draft, and of the one that was judged last: the first child of the node where the step
  // ended, or the last draft where it had none.
  double first_draft = kNoTransform;
  double judged_draft = kNoTransform;
  bool recovered = false;  // the step ended at a node with children

  // Ratios this close to 1 may be on either side of it in the engine, which rounded otherwise.
  double ratio_tolerance = 0.0;
  bool impossible_token = false;  // emitted with p = 0, first at row impossible_row of the path
  std::uint32_t impossible_row = 0;
  bool impossible_draft = false;      // any of the drafts has q = 0: nothing is known of what a verifier does with it
  std::int32_t impossible_node = -1;  // the first
  bool repeated_draft = false;        // a sibling holds the token of an earlier one
  std::int32_t repeated_node = -1;    // the first
  bool impossible_recovery = false;   // recovered where the residual has no mass (and p > 0: else impossible_token)
  bool drafted_recovery = false;      // the last token is drafted at the node where it was emitted
  bool end_is_known = true;           // drafted_recovery can be told: one path only, and drafts that are possible
  bool wrong_path = false;            // the path that is reported has other tokens than were emitted

  DistributionDigest first_distribution{};  // of row 0, to find requests that share their distributions,
  DistributionDigest draft_distribution{};  // of the root's proposal (zero where there is none),
  std::vector<NextRow> next;                // and of the rows after drafted paths, each path once, parents first
};

// One step of a sample under what is assumed of its verifier. `key` is that of the auditor's own random numbers,
// `index` the request's number in the file.
StepRecord record_step(const StepSample& sample, std::size_t index, const Assumptions& assumed, std::uint64_t key,
                       StepWorkspace& workspace);

// The uniform numbers of the auditor, one for each use.
enum class AuditUse : std::uint32_t { token, draft, last_token, absent_token, completion };
double audit_uniform(std::uint64_t key, std::int64_t request, std::uint32_t row, AuditUse use);

// Distribution [V] of the target row `row` of a request.
std::vector<double> target_distribution_of(const VerifyRequest& request, std::uint32_t row, StepWorkspace& workspace);

}  // namespace draftproof
