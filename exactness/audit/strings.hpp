// The completed strings of two tokens and more, and the first token alone, counted cell by cell over requests that
// share a context. A verifier is lossless iff the string of K + 1 tokens, completed by draws from the target where the
// step emitted fewer, follows the product of the target's distributions; this holds for every lossless verifier,
// whatever it does inside.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exactness/audit/audit.hpp"
#include "exactness/audit/step_rows.hpp"
#include "exactness/audit/tests.hpp"

namespace draftproof {

struct SharedContexts {
  std::int64_t groups = 0;  // of requests that share the distribution of their first token
  CountFit first_token;
  std::vector<CountFit> strings;  // [i] of i + 2 tokens
};

// Requests share a context when their group is the same, or, where the file gives none, the distributions of their
// first token and first drafts. (Where drafts may share the noise of the tokens, a one-hot proposal would tell of the
// token, and is not looked at.) Error (input): requests of one group whose first tokens have different distributions.
SharedContexts fit_shared_contexts(const StepSample& sample, std::span<const StepRecord> records,
                                   const Assumptions& assumed, std::uint64_t key);

}  // namespace draftproof
