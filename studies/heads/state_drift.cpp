#include "studies/heads/state_drift.hpp"

#include <algorithm>
#include <cmath>

namespace draftproof {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Nearest rank.
DriftSummary summary_of(std::vector<double> values) {
  const double mean = mean_of(values);
  std::ranges::sort(values);
  const auto quantile = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(rank, 1) - 1];
  };
  return {mean, quantile(0.1), quantile(0.9)};
}

}  // namespace

StateDistance state_distance(std::span<const float> a, std::span<const float> b) {
  double product = 0.0, of_a = 0.0, of_b = 0.0, of_difference = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    product += x * y;
    of_a += x * x;
    of_b += y * y;
    of_difference += (x - y) * (x - y);
  }
  StateDistance distance;
  // One square root each, so that equal vectors have a cosine of exactly 1.
  if (of_a > 0.0 && of_b > 0.0) distance.cosine = std::clamp(product / std::sqrt(of_a * of_b), -1.0, 1.0);
  distance.relative_l2 = std::sqrt(of_b > 0.0 ? of_difference / of_b : of_difference);
  return distance;
}

std::vector<DriftSample> drift_of(SlowHead& head, std::span<const HeadStep> steps, std::span<const Token> stream) {
  std::vector<DriftSample> samples;
  if (drafts_in_parallel(head.description().family)) return samples;
  SlowHead::Text text;
  head.read(text, stream);
  for (const HeadStep& step : steps)
    for (std::size_t i = 0; i < step.states.size(); ++i) {
      // Token before slot i + 2.
      const std::size_t token = step.stream_len - 1 + i;
      DriftSample sample;
      sample.slot = static_cast<std::int32_t>(i) + 2;
      sample.accepted = step.slots[i + 1].accepted;
      sample.target = state_distance(step.states[i], text.states[token]);
      sample.own = state_distance(step.states[i], head.row(text, stream.first(token + 1), {}).state);
      samples.push_back(sample);
    }
  return samples;
}

std::vector<SlotDrift> summarise_drift(std::span<const DriftSample> samples) {
  std::int32_t last = 0;
  for (const DriftSample& sample : samples) last = std::max(last, sample.slot);
  std::vector<SlotDrift> slots;
  for (std::int32_t slot = 2; slot <= last; ++slot) {
    std::vector<double> target_cosine, target_l2, own_cosine, own_l2, accepted, rejected;
    for (const DriftSample& sample : samples) {
      if (sample.slot != slot) continue;
      target_cosine.push_back(sample.target.cosine);
      target_l2.push_back(sample.target.relative_l2);
      own_cosine.push_back(sample.own.cosine);
      own_l2.push_back(sample.own.relative_l2);
      (sample.accepted ? accepted : rejected).push_back(sample.target.cosine);
    }
    if (target_cosine.empty()) continue;
    SlotDrift& drift = slots.emplace_back();
    drift.slot = slot;
    drift.count = std::ssize(target_cosine);
    drift.target_cosine = summary_of(target_cosine);
    drift.target_relative_l2 = summary_of(target_l2);
    drift.own_cosine = summary_of(own_cosine);
    drift.own_relative_l2 = summary_of(own_l2);
    if (!accepted.empty()) drift.target_cosine_accepted = mean_of(accepted);
    if (!rejected.empty()) drift.target_cosine_rejected = mean_of(rejected);
  }
  return slots;
}

}  // namespace draftproof
