// Steps whose engine recorded its own random numbers. What it emitted must follow from them, without any statistics;
// and the numbers must be uniform, independent of one another and of the drafts. Both together say that the step was
// sampled as its verifier says.
#pragma once

#include <span>
#include <vector>

#include "exactness/audit/audit.hpp"
#include "exactness/audit/step_rows.hpp"

namespace draftproof {

// `records`: of the sample's steps. Nothing where there are no recorded numbers.
//   replay                            certain: a step departs from its numbers further than rounding explains
//   coins_ks, coins_bins              the coins are uniform
//   draw_uniforms_ks, _bins           so are the uniform numbers of draws
//   correlation_coins                 coins of drafts i and i + 1 of a step
//   correlation_coins_of_requests     the first coins of requests b and b + 1 of the file
//   correlation_draft_coin            the first draft and its coin
//   correlation_coin_last             of the chain: the coin judged last, given how it fell, and the last token
std::vector<TestResult> recorded_tests(const StepSample& sample, std::span<const StepRecord> records,
                                       const AuditOptions& options);

}  // namespace draftproof
