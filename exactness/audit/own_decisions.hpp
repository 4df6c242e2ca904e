// Decisions of a verifier given its drafts, each at a known rate, and what it draws the last token from. Any lossless
// verifier emits correct strings; these are of one verifier alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/step/step_rows.hpp"
#include "reference/step/verifiers.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

enum class Doubt : std::uint8_t { open, none, too_close };  // the rate is in (0, 1), it is 0 or 1, rounding decides

// A decision on a draft that a step shows: a coin of this rate given the drafts and the decisions before it.
struct Decision {
  std::int64_t position;  // depth of the draft: 0 for children of the context
  double rate;
  Doubt doubt;
  bool accepted;
};

struct OwnOutcome {
  std::vector<Decision> decisions;
  std::vector<double> num_accepted;  // [K + 1] its distribution given the drafts; of block verification, else empty
  DenseMasses<double> last;          // [V] unnormalised: what the last token was drawn from
  bool impossible_last = false;      // the last token has no mass there, however the rows are rounded
};

// Are the decisions of this verifier known given its drafts? Not where drafts share the noise of the tokens.
bool has_own_decisions(const VerifierChoice& choice);

// The templates of verify/ themselves are run; the coins come from the step that is audited. `path`: the accepted
// nodes. `tolerance`: relative error of the rows; decisions that it could turn are too close. Costs three runs.
OwnOutcome own_outcome(const VerifierChoice& choice, StepRows& rows, std::span<const std::int32_t> path,
                       Token last_token, double tolerance);

}  // namespace draftproof
