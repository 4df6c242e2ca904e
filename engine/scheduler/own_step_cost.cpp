#include "engine/scheduler/own_step_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace draftproof {
namespace {

constexpr double kClassesPerOctave = 8.0;
constexpr double kFading = 1.0 - 1.0 / 64.0;
constexpr double kMemory = 256.0;  // steps
constexpr double kOutlier = 1.5;   // times what its class takes: the system did something else
constexpr double kWidth = 1.5;     // of the kernel, in classes

}  // namespace

std::size_t OwnStepCost::Curve::class_of(std::int64_t size) {
  const double octaves = std::log2(static_cast<double>(std::max<std::int64_t>(size, 1)));
  return std::min(static_cast<std::size_t>(std::lround(octaves * kClassesPerOctave)), kClasses - 1);
}

double OwnStepCost::Curve::observe(std::int64_t size, double expected_ns, double ns, std::int64_t step) {
  // Weights by distance in classes. Far ones count where no near one does.
  static const auto kWeights = [] {
    std::array<double, kClasses> weights{};
    for (std::size_t i = 0; i < kClasses; ++i) {
      const auto far = static_cast<double>(i);
      weights[i] = std::exp(-far * far / (2.0 * kWidth * kWidth)) + 1e-6 * std::exp(-far / 4.0);
    }
    return weights;
  }();
  const std::size_t own = class_of(size);
  Timed& of = timed_[own];
  if (of.count == 0) known_.push_back(own);
  if (of.count > 0) ns = std::min(ns, kOutlier * expected_ns * of.ns / of.expected_ns);
  const double fading = kFading * std::exp(static_cast<double>(of.last + 1 - step) / kMemory);
  of.expected_ns = fading * of.expected_ns + expected_ns;
  of.ns = fading * of.ns + ns;
  ++of.count;
  of.last = step;
  for (std::size_t c = 0; c < kClasses; ++c) {
    double expected = 0.0;
    double timed = 0.0;
    for (const std::size_t near : known_) {
      const double weight = kWeights[std::max(c, near) - std::min(c, near)];
      expected += weight * timed_[near].expected_ns;
      timed += weight * timed_[near].ns;
    }
    ratios_[c] = timed / expected;
  }
  return ns;
}

double OwnStepCost::observe(std::int64_t rows, std::int64_t requests, const DraftLoad& drafted, std::int64_t ns,
                            std::int64_t drafting_ns) {
  ++steps_;
  const double expected_ns = expected_->target_ns(planned_pass(rows, requests));
  const double counted = target_.observe(rows, expected_ns, static_cast<double>(ns - drafting_ns), steps_);
  if (drafted.passes == 0) plain_.observe(rows, expected_ns, counted, steps_);
  const auto more_ns = static_cast<double>(drafting_ns) - idle_ns_ * static_cast<double>(requests);
  if (drafted.passes == 0) {
    idle_ns_ += more_ns / static_cast<double>(requests) / 64.0;
  } else {
    drafting_.observe(drafted.requests, expected_pass_ns(drafted.requests), std::max(more_ns, 0.0) / drafted.passes,
                      steps_);
  }
  return counted + static_cast<double>(drafting_ns);
}

double OwnStepCost::target_ns(const PassLoad& load) const {
  const double expected = expected_->target_ns(load);
  return timed_ && !target_.empty() ? expected * target_.ratio(load.rows) : expected;
}

double OwnStepCost::draft_ns(const DraftLoad& load) const {
  if (!timed_ || drafting_.empty()) return expected_->draft_ns(load);
  return load.passes * expected_pass_ns(load.requests) * drafting_.ratio(load.requests);
}

double OwnStepCost::overhead_ns(std::int64_t requests, const DraftLoad& load) const {
  return timed_ && !target_.empty() ? 0.0 : expected_->overhead_ns(requests, load);
}

}  // namespace draftproof
