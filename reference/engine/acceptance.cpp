#include "reference/engine/acceptance.hpp"

#include <cmath>
#include <functional>

namespace draftproof {

void AcceptanceCounts::add_step(std::size_t draft_len, std::size_t num_accepted, std::size_t tokens_received) {
  ++steps;
  if (draft_len > 0) ++drafts;
  draft_tokens += static_cast<std::int64_t>(draft_len);
  accepted_tokens += static_cast<std::int64_t>(num_accepted);
  received_tokens += static_cast<std::int64_t>(tokens_received);
  discarded_tokens += static_cast<std::int64_t>(num_accepted + 1 - tokens_received);
  const bool full_length = draft_len == accepted.size();
  for (std::size_t j = 0; j < accepted.size(); ++j) {
    if (j < num_accepted) ++accepted_all_steps[j];
    if (!full_length) continue;
    if (j <= num_accepted) ++reached[j];
    if (j < num_accepted) ++accepted[j];
  }
}

AcceptanceCounts& AcceptanceCounts::operator+=(const AcceptanceCounts& other) {
  steps += other.steps;
  drafts += other.drafts;
  draft_tokens += other.draft_tokens;
  accepted_tokens += other.accepted_tokens;
  received_tokens += other.received_tokens;
  discarded_tokens += other.discarded_tokens;
  for (std::size_t j = 0; j < accepted.size(); ++j) {
    reached[j] += other.reached[j];
    accepted[j] += other.accepted[j];
    accepted_all_steps[j] += other.accepted_all_steps[j];
  }
  return *this;
}

std::optional<RateEstimate> estimate_rate(std::span<const std::int64_t> numerators,
                                          std::span<const std::int64_t> denominators) {
  std::int64_t numerator = 0;
  std::int64_t denominator = 0;
  for (const std::int64_t n : numerators) numerator += n;
  for (const std::int64_t d : denominators) denominator += d;
  if (denominator == 0) return std::nullopt;
  RateEstimate estimate{static_cast<double>(numerator) / static_cast<double>(denominator), std::nullopt};
  if (numerators.size() < 2) return estimate;
  double squares = 0.0;
  for (std::size_t c = 0; c < numerators.size(); ++c) {
    const double residual = static_cast<double>(numerators[c]) - estimate.rate * static_cast<double>(denominators[c]);
    squares += residual * residual;
  }
  const auto clusters = static_cast<double>(numerators.size());
  estimate.standard_error = std::sqrt(clusters / (clusters - 1.0) * squares) / static_cast<double>(denominator);
  return estimate;
}

AcceptanceMetrics acceptance_metrics(std::span<const AcceptanceCounts> clusters) {
  AcceptanceMetrics metrics;
  metrics.counts = clusters.front();
  for (const AcceptanceCounts& cluster : clusters.subspan(1)) metrics.counts += cluster;
  const AcceptanceCounts& counts = metrics.counts;

  using Count = std::function<std::int64_t(const AcceptanceCounts&)>;
  const auto estimate = [&](const Count& numerator, const Count& denominator) {
    std::vector<std::int64_t> numerators;
    std::vector<std::int64_t> denominators;
    for (const AcceptanceCounts& cluster : clusters) {
      numerators.push_back(numerator(cluster));
      denominators.push_back(denominator(cluster));
    }
    return estimate_rate(numerators, denominators);
  };
  const Count steps = [](const AcceptanceCounts& c) { return c.steps; };

  if (counts.drafts > 0)
    metrics.acceptance_length += static_cast<double>(counts.accepted_tokens) / static_cast<double>(counts.drafts);
  if (const auto rate = estimate([](const AcceptanceCounts& c) { return c.received_tokens; }, steps)) {
    metrics.tokens_per_step = rate->rate;
    metrics.tokens_per_step_standard_error = rate->standard_error;
  }
  double formula = 1.0;
  double product = 1.0;
  for (std::size_t j = 0; j < counts.accepted.size(); ++j) {
    metrics.conditional.push_back(estimate([j](const AcceptanceCounts& c) { return c.accepted[j]; },
                                           [j](const AcceptanceCounts& c) { return c.reached[j]; }));
    metrics.unconditional.push_back(
        estimate([j](const AcceptanceCounts& c) { return c.accepted_all_steps[j]; }, steps));
    // A position that was never reached has no rate, and its product is zero already.
    if (metrics.conditional[j]) product *= metrics.conditional[j]->rate;
    formula += product;
  }
  const bool had_full_length_step = counts.accepted.empty() ? counts.steps > 0 : counts.reached[0] > 0;
  if (had_full_length_step) metrics.tokens_per_step_formula = formula;
  return metrics;
}

}  // namespace draftproof
