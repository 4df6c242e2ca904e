// What speculation achieved, counted over verification steps.
//
//   drafts              steps that had a draft of at least one token
//   acceptance length   1 + accepted tokens / drafts                      (vLLM's "mean acceptance length")
//   tokens per step     tokens that the request received / steps
//   a_j                 draft j accepted, given that drafts 1..j-1 were   (conditional, on full-length steps)
//   formula             1 + sum_{i=1..K} prod_{j<=i} a_j
// A full-length step is one whose draft has K tokens. On those the formula is the mean of (accepted + 1), an identity;
// tokens per step differs from it by steps with shorter drafts and by tokens behind the end of the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace draftproof {

struct AcceptanceCounts {
  explicit AcceptanceCounts(std::size_t num_speculative_tokens = 0)
      : reached(num_speculative_tokens), accepted(num_speculative_tokens), accepted_all_steps(num_speculative_tokens) {}

  std::int64_t steps = 0;
  std::int64_t drafts = 0;
  std::int64_t draft_tokens = 0;
  std::int64_t accepted_tokens = 0;   // as verified, whether or not the request had room for them
  std::int64_t received_tokens = 0;   // accepted, recovered and bonus tokens up to the end of the request
  std::int64_t discarded_tokens = 0;  // emitted behind the end of the request
  // [K], position j at index j - 1
  std::vector<std::int64_t> reached;             // full-length steps in which drafts 1..j-1 were accepted
  std::vector<std::int64_t> accepted;            // full-length steps in which drafts 1..j were
  std::vector<std::int64_t> accepted_all_steps;  // steps of any draft length in which drafts 1..j were

  void add_step(std::size_t draft_len, std::size_t num_accepted, std::size_t tokens_received);
  AcceptanceCounts& operator+=(const AcceptanceCounts& other);  // K must be the same
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

// The metrics of clusters of steps (one request each, at least one cluster, all of one K).
struct AcceptanceMetrics {
  AcceptanceCounts counts;  // of all clusters
  double acceptance_length = 1.0;
  double tokens_per_step = 0.0;                            // 0 where there was no step
  std::optional<double> tokens_per_step_standard_error;    // needs two clusters
  std::optional<double> tokens_per_step_formula;           // nothing where no step was of full length
  std::vector<std::optional<RateEstimate>> conditional;    // [K]
  std::vector<std::optional<RateEstimate>> unconditional;  // [K], of all steps
};

AcceptanceMetrics acceptance_metrics(std::span<const AcceptanceCounts> clusters);

}  // namespace draftproof
