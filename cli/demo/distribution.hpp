// Strings of two tokens from one prefix, drawn by a speculative step or by plain decoding, and their exact
// distribution: what the verdict of a demo is made of (exactness/statistics/distribution_check.hpp).
//
// Where a step emits a single token, the second is drawn from the target: the algorithm is exact iff strings completed
// so follow the product of the targets.
#pragma once

#include <span>
#include <vector>

#include "engine/decode/decode_step.hpp"
#include "engine/draft/drafter.hpp"
#include "exactness/statistics/distribution_check.hpp"

namespace draftproof {

// One string by the verification step of options.seed, or by plain decoding. Options and prompt must be valid.
DistributionString draw_speculatively(ModelSession& target, Drafter& drafter, const DecodingOptions& options,
                                      std::span<const Token> prompt, DecodingWorkspace& workspace);
DistributionString draw_directly(ModelSession& target, const DecodingOptions& options, std::span<const Token> prompt,
                                 DecodingWorkspace& workspace);

// [V * V]: the product of the processed target probabilities, cell first * V + second.
std::vector<double> exact_distribution(ModelSession& target, const DecodingOptions& options,
                                       std::span<const Token> prompt, DecodingWorkspace& workspace);

}  // namespace draftproof
