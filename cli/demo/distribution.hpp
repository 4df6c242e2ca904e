// Does speculation emit the target's distribution? From one prefix, the first two tokens are drawn many times by a
// speculative step and as many times by plain decoding, and both samples meet each other and the exact distribution of
// two tokens.
//
// Joint cells, because a verifier can have the right first token and the wrong second one given the first. Where a step
// emits a single token, the second is drawn from the target: the algorithm is exact iff strings completed so follow the
// product of the targets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/draft/drafter.hpp"
#include "reference/engine/decode_step.hpp"
#include "reference/statistics/chi_squared.hpp"

namespace draftproof {

// Level of each of the two tests and the power at which the detectable distance is stated. Two tests a run at 1e-4
// raise a false alarm once in 5000 seeds; a given seed gives the same answer always.
inline constexpr double kDistributionAlpha = 1e-4;
inline constexpr double kDistributionPower = 0.99;

using DistributionString = std::array<Token, 2>;

// One string by the verification step of options.seed, or by plain decoding. Options and prompt must be valid.
DistributionString draw_speculatively(ModelSession& target, Drafter& drafter, const DecodingOptions& options,
                                      std::span<const Token> prompt, DecodingWorkspace& workspace);
DistributionString draw_directly(ModelSession& target, const DecodingOptions& options, std::span<const Token> prompt,
                                 DecodingWorkspace& workspace);

// [V * V]: the product of the processed target probabilities, cell first * V + second.
std::vector<double> exact_distribution(ModelSession& target, const DecodingOptions& options,
                                       std::span<const Token> prompt, DecodingWorkspace& workspace);

struct DistributionCheck {
  std::int64_t samples = 0;    // of either distribution
  ChiSquaredTest two_sample;   // speculative against direct
  ChiSquaredTest exact;        // speculative against the exact distribution
  double detectable_tv = 1.0;  // of the first test, and of the second
  double detectable_tv_exact = 1.0;
  std::optional<DistributionString> impossible;  // a string that was emitted, by either, and has probability zero
  std::int64_t impossible_count = 0;

  bool is_finding() const {
    return impossible || two_sample.rejects(kDistributionAlpha) || exact.rejects(kDistributionAlpha);
  }
  std::string sentence() const;
};

// "chi-squared 41.8 on 57 degrees of freedom, p = 0.934; a total variation of 0.155 would be found".
std::string describe(const ChiSquaredTest& test, double detectable_tv);

DistributionCheck compare_distributions(std::span<const DistributionString> speculative,
                                        std::span<const DistributionString> direct,
                                        std::span<const double> distribution);

}  // namespace draftproof
