#include "engine/scheduler/speculation_switch.hpp"

#include <algorithm>
#include <bit>

namespace draftproof {
namespace {

constexpr std::int64_t kPlainSteps = 3;  // of a look: they emit a token a request, and only their time varies
constexpr std::int64_t kDraftedTokens = 24;
constexpr std::int64_t kDraftingStepsMin = 3;
constexpr std::int64_t kLookAfterMax = 512;
constexpr double kFading = 1.0 - 1.0 / 64.0;
constexpr double kOutlier = 3.0;  // times the mean: the system did something else

// Steps of a kind that say what it is worth.
std::int64_t steps_of_look(bool drafting, std::int64_t batch) {
  return drafting ? std::max(kDraftingStepsMin, kDraftedTokens / batch) : kPlainSteps;
}

}  // namespace

SpeculationSwitch::Class& SpeculationSwitch::class_of(std::int64_t batch) {
  const auto width = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(batch - 1)));
  return classes_[std::min(width, kClasses - 1)];
}

bool SpeculationSwitch::drafts(std::int64_t batch) {
  if (batch < 1) return true;
  Class& c = class_of(batch);
  for (const bool drafting : {false, true})
    if (c.steps[drafting].count < steps_of_look(drafting, batch)) return drafting;
  if (c.looking > 0) {
    --c.looking;
    return !c.drafting;
  }
  const bool better = c.steps[1].per_ns() > c.steps[0].per_ns();
  if (better != c.drafting) {
    c.drafting = better;
    c.taken = 0;
    c.look_after = 32;
  }
  if (++c.taken > c.look_after) {
    c.taken = 0;
    c.look_after = std::min(2 * c.look_after, kLookAfterMax);
    c.looking = std::clamp<std::int64_t>(c.look_after / 16, kDraftingStepsMin, steps_of_look(!c.drafting, batch)) - 1;
    return !c.drafting;
  }
  return c.drafting;
}

void SpeculationSwitch::observe(std::int64_t batch, bool drafted, std::int64_t tokens, std::int64_t ns) {
  if (batch < 1 || ns <= 0) return;
  Steps& steps = class_of(batch).steps[drafted];
  auto time = static_cast<double>(ns);
  // Per request, since a class holds batches of two to one sizes.
  if (steps.count > 0) time = std::min(time, kOutlier * steps.ns / steps.tokens * static_cast<double>(tokens));
  steps.tokens = kFading * steps.tokens + static_cast<double>(tokens);
  steps.ns = kFading * steps.ns + time;
  ++steps.count;
}

}  // namespace draftproof
