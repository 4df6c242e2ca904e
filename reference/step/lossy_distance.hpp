// How far the first token of a step is from the target under a lossy rule, on the step's own rows: p after the context,
// q that the first draft was drawn from. Every step reads these rows.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/step/step_rows.hpp"

namespace draftproof {

// Total variation of the token from a draw from p, by the formula of the rule's file in verify/lossy; of thresholds
// over a draft from q without siblings; of fly with a window shorter than the draft the bound, as if every window
// passed. Nothing of a rule for which there is none: one
// that is lossless, or looks at siblings. Errors: RowError.
std::optional<double> first_token_distance(const VerifierChoice& choice, StepRows& rows);

// guidance_distance() of every row, request by request; nothing of rows without guidance.
std::vector<std::optional<double>> guidance_distances(std::span<const VerifyRequest> requests, int threads);

// Those that are compared with chain, the first: of each with standard and other parameters.
inline constexpr std::array kComparedLossyRules{"chain",
                                                "ensemble:weight=0.9",
                                                "ensemble:weight=0.7",
                                                "ensemble:weight=0.5",
                                                "fly:window=1",
                                                "fly:window=2",
                                                "typical",
                                                "typical:epsilon=0.3,delta=0.09",
                                                "thresholds",
                                                "thresholds:acc=0.5,single=0.5",
                                                "top_k_resample:k=16",
                                                "relaxed:top_k=10,delta=0.2",
                                                "relaxed",
                                                "accept_k",
                                                "synthetic:rate=0.7"};

struct LossyRule {
  std::string verifier;
  double accepted = 0.0;  // drafts of a step, on average
  double distance = 0.0;  // first_token_distance(), on average over steps with drafts; 0 of chain
};

}  // namespace draftproof
