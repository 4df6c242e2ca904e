// What one verification step looks like under the distributions it should follow: each token, draft and decision as a
// number whose distribution is known whatever the rows were. Nothing of the rows themselves is kept, so that a file of
// any size can be audited.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reference/exactness/audit/sample.hpp"
#include "reference/step/step_rows.hpp"

namespace draftproof {

// Not a number that a transform can have: there is nothing to transform.
inline constexpr double kNoTransform = -1.0;

using DistributionDigest = std::array<std::uint64_t, 2>;  // the first half of the SHA-256 of a distribution

struct DraftRecord {
  double ratio = 1.0;             // p/q of the draft token
  double accept_by_row = 1.0;     // sum_x min(p, q)
  double drafted = kNoTransform;  // the draft's transform under q; none where q is one-hot
  bool impossible = false;        // q = 0: nothing is known of what a verifier does with it
};

struct StepRecord {
  // Transforms of the first two emitted tokens under the target rows 0 and 1. None where the token was not emitted, is
  // impossible, or the row leaves no choice.
  std::array<double, 2> emitted = {kNoTransform, kNoTransform};
  bool first_row_has_choice = false;
  std::vector<DraftRecord> drafts;  // [K]
  std::uint32_t accepted = 0;
  double last =
      kNoTransform;  // transform of the last token under the residual distribution, or p_K for the bonus token

  // Ratios this close to 1 may be on either side of it in the engine, which rounded otherwise.
  double ratio_tolerance = 0.0;
  bool impossible_token = false;  // emitted with p = 0, first at row impossible_row
  std::uint32_t impossible_row = 0;
  bool impossible_draft = false;     // any of the drafts
  bool impossible_recovery = false;  // recovered although p < q there (and p > 0: else it is an impossible token)

  DistributionDigest first_distribution{};   // to find requests that share their distributions: of row 0,
  DistributionDigest second_distribution{};  // of row 1 (zero where there are no drafts),
  DistributionDigest draft_distribution{};   // and of the first draft (zero where there are none)
};

// `key` is that of the auditor's own random numbers, `index` the request's number in the file.
StepRecord record_step(const VerifyRequest& request, std::span<const Token> emitted, std::uint64_t key,
                       std::int64_t index, StepWorkspace& workspace);

// The uniform numbers of the auditor, one for each use.
enum class AuditUse : std::uint32_t { token, draft, last_token, absent_token, completion };
double audit_uniform(std::uint64_t key, std::int64_t request, std::uint32_t row, AuditUse use);

// Distribution [V] of the target row `row` of a request, for a row < 2.
std::vector<double> target_distribution_of(const VerifyRequest& request, std::uint32_t row, StepWorkspace& workspace);
// Distribution [V] that the first draft was drawn from.
std::vector<double> first_draft_distribution_of(const VerifyRequest& request, StepWorkspace& workspace);

}  // namespace draftproof
