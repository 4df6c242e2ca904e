// Does speculation emit the target's law? From one prefix, the first two tokens are drawn many times by a speculative
// step and as many times by plain decoding, and both samples meet each other and the exact law of two tokens.
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
#include "reference/engine/generate.hpp"
#include "reference/statistics/chi_squared.hpp"

namespace draftproof {

// Level of each of the two tests and the power at which the detectable distance is stated. Two tests a run at 1e-4
// raise a false alarm once in 5000 seeds; a given seed gives the same answer always.
inline constexpr double kLawAlpha = 1e-4;
inline constexpr double kLawPower = 0.99;

using LawString = std::array<Token, 2>;

// One string by the verification step of options.seed, or by plain decoding. Options and prompt must be valid.
LawString draw_speculatively(LanguageModel& target, Drafter& drafter, const DecodingOptions& options,
                             std::span<const Token> prompt, DecodingWorkspace& workspace);
LawString draw_directly(LanguageModel& target, const DecodingOptions& options, std::span<const Token> prompt,
                        DecodingWorkspace& workspace);

// [V * V]: the product of the processed target probabilities, cell first * V + second.
std::vector<double> exact_law(LanguageModel& target, const DecodingOptions& options, std::span<const Token> prompt,
                              DecodingWorkspace& workspace);

struct LawCheck {
  std::int64_t samples = 0;    // of either law
  ChiSquaredTest two_sample;   // speculative against direct
  ChiSquaredTest exact;        // speculative against the exact law
  double detectable_tv = 1.0;  // of the first test, and of the second
  double detectable_tv_exact = 1.0;
  std::optional<LawString> impossible;  // a string that was emitted, by either, and has probability zero
  std::int64_t impossible_count = 0;

  bool is_finding() const { return impossible || two_sample.rejects(kLawAlpha) || exact.rejects(kLawAlpha); }
  std::string sentence() const;
};

// "chi-squared 41.8 on 57 degrees of freedom, p = 0.934; a total variation of 0.155 would be found".
std::string describe(const ChiSquaredTest& test, double detectable_tv);

LawCheck compare_laws(std::span<const LawString> speculative, std::span<const LawString> direct,
                      std::span<const double> law);

}  // namespace draftproof
