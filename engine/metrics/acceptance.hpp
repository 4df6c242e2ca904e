// Acceptance of speculation, counted over verification steps.
//
//   drafts              steps that had a draft of at least one token
//   acceptance length   1 + accepted tokens / drafts                      (vLLM's "mean acceptance length")
//   tokens per step     tokens that the request received / steps
//   a_j                 a draft accepted at position j (depth j of a tree), given that the step came there and had
//   drafts
//                       there   (conditional)
//   formula             1 + sum_i prod_{j<=i} a_j, up to the first position that no step reached
// Drafts may have any lengths. Where all have the same, the formula is the mean of (accepted + 1), an identity; tokens
// per step differs from it by shorter drafts and by tokens behind the end of the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace draftproof {

struct AcceptanceCounts {
  explicit AcceptanceCounts(std::size_t num_speculative_tokens = 0)
      : reached(num_speculative_tokens), accepted(num_speculative_tokens) {}

  std::int64_t steps = 0;
  std::int64_t drafts = 0;
  std::int64_t draft_tokens = 0;
  std::int64_t accepted_tokens = 0;   // as verified, whether or not the request had room for them
  std::int64_t received_tokens = 0;   // accepted, recovered and bonus tokens up to the end of the request
  std::int64_t discarded_tokens = 0;  // emitted behind the end of the request
  // [K], position j at index j - 1
  std::vector<std::int64_t> reached;   // steps that accepted 1..j-1 and had a draft at j
  std::vector<std::int64_t> accepted;  // of those, that accepted it

  struct Step {
    std::size_t draft_tokens;  // nodes of the draft
    std::size_t num_accepted;
    bool rejected;  // there was a draft at position num_accepted + 1
    std::size_t tokens_received;
  };
  double acceptance_length() const;  // 1 without drafts
  // The vectors grow where a draft is longer than they are.
  void add_step(const Step& step);
  AcceptanceCounts& operator+=(const AcceptanceCounts& other);
  void grow_to(std::size_t positions);
  friend bool operator==(const AcceptanceCounts&, const AcceptanceCounts&) = default;
};

// A rate with its standard error over independent clusters; nothing where the denominator is 0.
struct RateEstimate {
  double rate;
  std::optional<double> standard_error;  // needs two clusters
};

// sum of numerators / sum of denominators. Steps of one continuation depend on each other, so the error is that of a
// ratio of cluster totals: se^2 = C / (C - 1) sum_c (n_c - r d_c)^2 / (sum_c d_c)^2 (Cochran, Sampling
// Techniques, 2.11).
std::optional<RateEstimate> estimate_rate(std::span<const std::int64_t> numerators,
                                          std::span<const std::int64_t> denominators);

// The metrics of clusters of steps (one request each, at least one cluster).
struct AcceptanceMetrics {
  AcceptanceCounts counts;  // of all clusters
  double acceptance_length = 1.0;
  double tokens_per_step = 0.0;                            // 0 where there was no step
  std::optional<double> tokens_per_step_standard_error;    // needs two clusters
  std::optional<double> tokens_per_step_formula;           // nothing where no step had a draft
  std::vector<std::optional<RateEstimate>> conditional;    // [K]
  std::vector<std::optional<RateEstimate>> unconditional;  // [K], of all steps
};

AcceptanceMetrics acceptance_metrics(std::span<const AcceptanceCounts> clusters);

}  // namespace draftproof
