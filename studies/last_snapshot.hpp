// Final snapshot of a panel's settings, computed here and now: for command lines and tests, which have no window.
#pragma once

#include <optional>
#include <utility>

#include "studies/job.hpp"

namespace draftproof {

// Throws what compute() of these settings throws.
template <class Snapshot, class Settings>
Snapshot last_snapshot(const Settings& settings) {
  Job job;
  std::optional<Snapshot> last;
  compute(settings, job, [&](Snapshot published) { last = std::move(published); });
  return std::move(last).value();
}

}  // namespace draftproof
