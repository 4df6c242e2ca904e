// One sample of the distribution lab after the other: the step layer with its verifier, or a bug.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/token.hpp"
#include "studies/lab/distribution_lab.hpp"

namespace draftproof {

struct LabSample {
  Token token;                     // the first that the step emits
  std::int32_t num_accepted = -1;  // drafts; -1: unknown
};

struct LabSampler {
  std::vector<double> expected;                    // [V] what tokens should follow
  std::function<LabSample(std::uint64_t)> sample;  // number 0, 1, ...: of a request with a seed of its own
};

// The rows of a snapshot as the pipeline leaves them: p, q, overlap, residual, total_variation and acceptance are set.
void fill_rows(DistributionLabSnapshot& snapshot);

// Errors (usage): an unknown verifier or bug, a draft that the verifier does not take.
LabSampler lab_sampler(const DistributionLabSnapshot& rows);

// Those of kComparedLossyRules on these rows, with the same drafts and coins.
std::vector<LossyRule> lossy_rules(const DistributionLabSnapshot& rows, Job& job);

}  // namespace draftproof
