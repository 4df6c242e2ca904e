// Tests of a verifier's decisions, given the drafts and their rows: each is a coin of a known rate.
#pragma once

#include <span>
#include <vector>

#include "exactness/audit/audit.hpp"
#include "exactness/audit/step_rows.hpp"

namespace draftproof {

// Acceptance of the chain verifier. Requests with an impossible draft are left out: what a verifier does with them is a
// convention.
std::vector<PositionAudit> acceptance_by_position(std::span<const StepRecord> records);

// `acceptance_certain`: decisions of rate 1 (p > q by more than rounding) that were rejections, or of rate 0 that were
//   none.
// `acceptance_by_position`, `acceptance_by_rate`: sum over cells of (O - E)^2 / V, E and V the sums of rates r and of
//   r (1 - r) over the decisions in the cell. A decision is one on a draft that was reached.
// `num_accepted`: counts of the numbers accepted against the sums of their distributions (of the chain
//   (1 - r_i) prod_{j<i} r_j), with their exact covariance.
std::vector<TestResult> acceptance_tests(std::span<const StepRecord> records);

}  // namespace draftproof
