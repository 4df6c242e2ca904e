#include "engine/metrics/acceptance.hpp"

#include <cmath>
#include <functional>

namespace draftproof {

namespace {

// Clusters may have met drafts of other lengths.
std::int64_t at(const std::vector<std::int64_t>& counts, std::size_t j) {
  return j < counts.size() ? counts[j] : 0;
}

}  // namespace

double AcceptanceCounts::acceptance_length() const {
  return drafts > 0 ? 1.0 + static_cast<double>(accepted_tokens) / static_cast<double>(drafts) : 1.0;
}

void AcceptanceCounts::grow_to(std::size_t positions) {
  if (positions <= accepted.size()) return;
  reached.resize(positions);
  accepted.resize(positions);
}

void AcceptanceCounts::add_step(const Step& step) {
  ++steps;
  if (step.draft_tokens > 0) ++drafts;
  draft_tokens += static_cast<std::int64_t>(step.draft_tokens);
  accepted_tokens += static_cast<std::int64_t>(step.num_accepted);
  received_tokens += static_cast<std::int64_t>(step.tokens_received);
  discarded_tokens += static_cast<std::int64_t>(step.num_accepted + 1 - step.tokens_received);
  grow_to(step.num_accepted + (step.rejected ? 1 : 0));
  for (std::size_t j = 0; j < step.num_accepted; ++j) {
    ++reached[j];
    ++accepted[j];
  }
  if (step.rejected) ++reached[step.num_accepted];
}

AcceptanceCounts& AcceptanceCounts::operator+=(const AcceptanceCounts& other) {
  steps += other.steps;
  drafts += other.drafts;
  draft_tokens += other.draft_tokens;
  accepted_tokens += other.accepted_tokens;
  received_tokens += other.received_tokens;
  discarded_tokens += other.discarded_tokens;
  grow_to(other.accepted.size());
  for (std::size_t j = 0; j < other.accepted.size(); ++j) {
    reached[j] += other.reached[j];
    accepted[j] += other.accepted[j];
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

  metrics.acceptance_length = counts.acceptance_length();
  if (const auto rate = estimate([](const AcceptanceCounts& c) { return c.received_tokens; }, steps)) {
    metrics.tokens_per_step = rate->rate;
    metrics.tokens_per_step_standard_error = rate->standard_error;
  }
  double formula = 1.0;
  double product = 1.0;
  for (std::size_t j = 0; j < counts.accepted.size(); ++j) {
    metrics.conditional.push_back(estimate([j](const AcceptanceCounts& c) { return at(c.accepted, j); },
                                           [j](const AcceptanceCounts& c) { return at(c.reached, j); }));
    metrics.unconditional.push_back(estimate([j](const AcceptanceCounts& c) { return at(c.accepted, j); }, steps));
    product *= metrics.conditional[j] ? metrics.conditional[j]->rate : 0.0;  // nothing is known of what no step reached
    formula += product;
  }
  const bool had_draft = counts.accepted.empty() ? counts.steps > 0 : counts.reached[0] > 0;
  if (had_draft) metrics.tokens_per_step_formula = formula;
  return metrics;
}

}  // namespace draftproof
