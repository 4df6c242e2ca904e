// Tests of the emitted tokens after the first, at every depth.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exactness/audit/step_rows.hpp"
#include "exactness/statistics/test_result.hpp"

namespace draftproof {

// `next_tokens_ks`, `next_tokens_bins`: transforms of all tokens after the first, as one sample.
// `next_tokens_by_depth`: the same in bins at each depth.
// Under Assumptions::exact_at_nodes those that were emitted; else the string completed to the depth of the draft and
// one more: where there is no token, a fresh uniform number stands for a draw of ours from the target.
std::vector<TestResult> next_token_tests(std::span<const StepRecord> records, const Assumptions& assumed,
                                         std::uint64_t key);

}  // namespace draftproof
