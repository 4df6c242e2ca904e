// The three ways to say how much of a draft is accepted, and the way from one to another.
//
//   conditional    a_i = P(draft i accepted | drafts 1 .. i-1 accepted)
//   unconditional  s_i = P(drafts 1 .. i accepted) = a_1 ... a_i, the survival  (vLLM's "per-position acceptance rate")
//   acceptance length  1 + s_1 + ... + s_K, the bonus or recovered token included
#pragma once

#include <span>
#include <string>
#include <vector>

namespace draftproof {

std::vector<double> survival_of(std::span<const double> conditional);
// A rate behind a survival of 0 is 0. Errors (input) at `where`: a survival outside [0, 1], or one that rises.
std::vector<double> conditional_of(std::span<const double> survival, const std::string& where);
double acceptance_length_of(std::span<const double> survival);

}  // namespace draftproof
