// Adaptive-p (MrJackSpade and ddh0, llama.cpp pull request 17927): no filter, but other logits for what is left. Tokens
// whose probability is near a target are favoured, and the target moves against the mean of what was drawn before:
//   t = clamp(2 target - mean, 0, 1),  d = |p_i - t| / 0.3,  x_i = 5 - 10 d^2 / (1 + d).
// `mean` is the state: the average, with weights decay^age, of the probabilities p that drawn tokens had before this; a
// request begins with the target. It has no paper; these are the constants of llama.cpp, which rounds to float where
// this is double. kept_mass is that of the filters before it no more, but 1.
#pragma once

#include <vector>

#include "reference/logits/samplers.hpp"

namespace draftproof {

// x_i [V] of the tokens that the distribution keeps, -infinity for others. adaptive_target must be 0 or more.
void adapt_logits(const SamplerParameters& parameters, const LogitsDistribution& row, std::vector<float>& out);

// The mean after a token of probability p (before adaptive-p) was drawn.
inline double next_adaptive_mean(double mean, double decay, double probability) {
  return decay * mean + (1.0 - decay) * probability;
}

}  // namespace draftproof
