// The law of what a verifier emits, and the criterion of exactness.
//
// A step emits strings of different lengths. Completed by draws from the target to one length L, an exact verifier's
// output has the law of the target itself: P(s) = product of p(s_i | s_<i) for every s of length L. Testing the first
// token alone is not enough: a block verifier with an unscaled residual is right there and wrong later.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "reference/exactness/rational.hpp"
#include "reference/token.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

using TokenString = std::vector<Token>;
using OutputLaw = std::map<TokenString, Rational>;  // strings emitted, their probabilities
using TargetLaw = std::function<const DenseMasses<Rational>&(const TokenString& prefix)>;

// Where the completed law first differs: the shortest string, and among those the first in order.
struct LawDifference {
  TokenString prefix;  // of the string, without its last token
  Token token;         // its last token
  Rational emitted;    // probability of the string under the verifier
  Rational expected;   // under the target
};

// Compares the completed law with the target at every length up to that of the longest emitted string. A law whose
// probabilities do not sum to 1 differs at the empty string.
std::optional<LawDifference> first_difference(const OutputLaw& law, const TargetLaw& target, std::int32_t vocab_size);

// Total-variation distance of the completed law from the target, at the length of the longest emitted string.
Rational total_variation(const OutputLaw& law, const TargetLaw& target, std::int32_t vocab_size);

// Total-variation distance of two laws over emitted strings.
Rational distance_between(const OutputLaw& a, const OutputLaw& b);

// The law of two steps, the second starting where the first ended. `second` is asked once per string.
OutputLaw compose(const OutputLaw& first, const std::function<OutputLaw(const TokenString& prefix)>& second);

}  // namespace draftproof
