// Does a sample follow the distribution that it is said to follow? Strings of two tokens by speculation meet as many by
// plain decoding, and the exact distribution.
//
// Joint cells, because a verifier can have the right first token and the wrong second one given the first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/token.hpp"
#include "exactness/statistics/chi_squared.hpp"

namespace draftproof {

// Level of each of the two tests and the power at which the detectable distance is stated. Two tests a run at 1e-4
// raise a false alarm once in 5000 seeds; a given seed gives the same answer always.
inline constexpr double kDistributionAlpha = 1e-4;
inline constexpr double kDistributionPower = 0.99;

using DistributionString = std::array<Token, 2>;

struct DistributionCheck {
  std::int64_t samples = 0;    // of either distribution
  ChiSquaredTest two_sample;   // speculative against direct
  ChiSquaredTest exact;        // speculative against the exact distribution
  double detectable_tv = 1.0;  // of the first test, and of the second
  double detectable_tv_exact = 1.0;
  std::optional<DistributionString> impossible;  // a string that was emitted, by either, and has probability zero
  std::int64_t impossible_count = 0;
  bool lossless = true;  // the verifier is said to be

  bool is_finding() const {
    return impossible || two_sample.rejects(kDistributionAlpha) || exact.rejects(kDistributionAlpha);
  }
  // A lossy verifier is meant to move the distribution: that it does is no failure.
  bool is_failure() const { return lossless && is_finding(); }

  std::string verdict() const;                // "speculation emits the target's distribution"
  std::string scope() const;                  // "20000 strings of two tokens, level 0.0001 each"
  std::vector<std::string> evidence() const;  // a line for each test, and one for what is impossible
  std::string sentence() const;               // all of it
};

// distribution: [V * V], the probability of the string (a, b) at a * V + b.
DistributionCheck compare_distributions(std::span<const DistributionString> speculative,
                                        std::span<const DistributionString> direct,
                                        std::span<const double> distribution);

}  // namespace draftproof
