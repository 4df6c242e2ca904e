#include "studies/speculate/step_levels.hpp"

#include <algorithm>
#include <numeric>

namespace draftproof {

const char* name_of(StepPart part) {
  static constexpr std::array<const char*, kStepParts> kNames{"draft", "prefill", "verify", "normal", "engine"};
  return kNames[static_cast<std::size_t>(part)];
}

std::int64_t StepBox::busy_ns() const {
  return std::accumulate(part_ns.begin(), part_ns.end(), std::int64_t{0});
}

void StepBox::merge(const StepBox& next) {
  end_ns = next.end_ns;
  for (std::size_t part = 0; part < kStepParts; ++part) part_ns[part] += next.part_ns[part];
  steps += next.steps;
  running_max = std::max(running_max, next.running_max);
  waiting_max = std::max(waiting_max, next.waiting_max);
  drafted += next.drafted;
  accepted += next.accepted;
  emitted += next.emitted;
  prompt_tokens += next.prompt_tokens;
  held_slot_ns += next.held_slot_ns;
  committed_slot_ns += next.committed_slot_ns;
  accepted_slot_ns += next.accepted_slot_ns;
  rejected_slot_ns += next.rejected_slot_ns;
}

// A box of a level is there from its first step on, and takes in the others as they come.
void StepLevels::add(const StepBox& step) {
  if (levels_.empty()) levels_.emplace_back();
  levels_.front().push_back(step);
  const std::size_t number = levels_.front().size() - 1;
  std::size_t held = 1;  // steps of a box
  for (std::size_t level = 1;; ++level) {
    held *= kMerged;
    if (level == levels_.size()) {
      if (number + 1 < held) return;
      // The first box of this level is complete.
      levels_.push_back({levels_[level - 1].front()});
      for (std::size_t i = 1; i < levels_[level - 1].size(); ++i) levels_[level].back().merge(levels_[level - 1][i]);
    } else if (number % held == 0) {
      levels_[level].push_back(step);
    } else {
      levels_[level].back().merge(step);
    }
  }
}

std::span<const StepBox> StepLevels::visible(std::int64_t from_ns, std::int64_t to_ns, std::size_t most) const {
  std::span<const StepBox> found;
  for (const std::vector<StepBox>& level : levels_) {
    const auto first = std::ranges::partition_point(level, [&](const StepBox& box) { return box.end_ns < from_ns; });
    const auto last =
        std::partition_point(first, level.end(), [&](const StepBox& box) { return box.begin_ns <= to_ns; });
    found = std::span(level).subspan(static_cast<std::size_t>(first - level.begin()),
                                     static_cast<std::size_t>(last - first));
    if (found.size() <= most) break;
  }
  return found;
}

}  // namespace draftproof
