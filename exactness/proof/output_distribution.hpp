// The distribution of what a verifier emits, and the criterion of exactness.
//
// A step emits strings of different lengths. Completed by draws from the target to one length L, an exact verifier's
// output has the distribution of the target itself: P(s) = product of p(s_i | s_<i) for every s of length L. Testing
// the first token alone is not enough: a block verifier with an unscaled residual is right there and wrong later.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/token.hpp"
#include "exactness/rational.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

using TokenString = std::vector<Token>;
using OutputDistribution = std::map<TokenString, Rational>;  // strings emitted, their probabilities
using TargetDistribution = std::function<const DenseMasses<Rational>&(const TokenString& prefix)>;

// Where the completed distribution first differs: the shortest string, and among those the first in order.
struct DistributionDifference {
  TokenString prefix;  // of the string, without its last token
  Token token;         // its last token
  Rational emitted;    // probability of the string under the verifier
  Rational expected;   // under the target
};

// Compares the completed distribution with the target at every length up to that of the longest emitted string. A
// distribution whose probabilities do not sum to 1 differs at the empty string.
std::optional<DistributionDifference> first_difference(const OutputDistribution& distribution,
                                                       const TargetDistribution& target, std::int32_t vocab_size);

// Total-variation distance of the completed distribution from the target, at the length of the longest emitted string.
Rational total_variation(const OutputDistribution& distribution, const TargetDistribution& target,
                         std::int32_t vocab_size);

// Total-variation distance of two distributions over emitted strings.
Rational distance_between(const OutputDistribution& a, const OutputDistribution& b);

// The distribution of two steps, the second starting where the first ended. `second` is asked once per string.
OutputDistribution compose(const OutputDistribution& first,
                           const std::function<OutputDistribution(const TokenString& prefix)>& second);

}  // namespace draftproof
