// The steps of a run at every zoom: boxes of one step, and above them levels of boxes that hold four of the level
// below, so that any stretch of time is drawn with a bounded number of boxes, however many steps it has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace draftproof {

// Parts of the time of a step. A target pass that does several things is divided by their rows.
enum class StepPart : std::uint8_t {
  draft,
  prefill,  // of the target's pass, rows of prompts
  verify,   // rows of requests with drafts
  normal,   // rows of requests without
  engine,   // scheduling, sampling, copies of blocks
};
inline constexpr std::size_t kStepParts = 5;
const char* name_of(StepPart part);

struct StepBox {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::array<std::int64_t, kStepParts> part_ns{};  // in this order within a step
  std::int64_t first_step = 0;
  std::int64_t steps = 1;
  std::int32_t running_max = 0, waiting_max = 0;
  std::int64_t drafted = 0, accepted = 0, emitted = 0, prompt_tokens = 0;
  // Slots of the KV cache that the requests of a step hold, times its duration: all, of committed tokens, of drafts
  // that were accepted and rejected. The rest are slots allocated without a token (block tails).
  double held_slot_ns = 0.0, committed_slot_ns = 0.0, accepted_slot_ns = 0.0, rejected_slot_ns = 0.0;

  std::int64_t busy_ns() const;
  // The mean over the time of the steps of one of the four.
  double mean_slots(double slot_ns) const { return busy_ns() > 0 ? slot_ns / static_cast<double>(busy_ns()) : 0.0; }
  // Takes in the next one.
  void merge(const StepBox& next);
};

class StepLevels {
 public:
  // Precondition: it begins where the last one ended, or later.
  void add(const StepBox& step);

  // Boxes of one step each.
  std::span<const StepBox> steps() const { return levels_.empty() ? std::span<const StepBox>() : levels_.front(); }
  std::int64_t end_ns() const { return levels_.empty() ? 0 : levels_.front().back().end_ns; }
  // The boxes that overlap [from_ns, to_ns], of the finest level that needs at most `most` of them.
  std::span<const StepBox> visible(std::int64_t from_ns, std::int64_t to_ns, std::size_t most) const;

 private:
  static constexpr std::size_t kMerged = 4;

  std::vector<std::vector<StepBox>> levels_;
};

}  // namespace draftproof
