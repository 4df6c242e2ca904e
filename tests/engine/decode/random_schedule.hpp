// Random schedules for the scheduler: requests that come, are cancelled, fail, share prefixes and have companions, on
// tiny caches under every policy; a backend that keeps what lies in every slot and compares it with plain decoding; and
// a recount of everything in maps. A schedule that fails is shrunk before it is shown.
#pragma once

#include "engine/scheduler/scheduler.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

struct ScheduledRequest {
  std::int32_t id = 0;  // stays when others are removed
  std::int32_t arrival_step = 0;
  std::int32_t prompt_len = 1;
  std::int32_t companion_len = 0;  // 0: no companion
  std::int32_t output_len_max = 1;
  std::int32_t group = -1;  // requests of a group have equal prompts as far as shared_len
  std::int32_t shared_len = 0;
  std::int32_t stop_after = 0;  // output tokens after which it stops; 0: never
  std::int32_t cancel_step = -1;
  std::int32_t fail_after = -1;  // output tokens after which its next step fails
  std::int32_t num_drafts_max = 1000;
  bool trees = false;
};

struct RandomSchedule {
  std::uint64_t seed = 0;
  SchedulerOptions options;
  std::string speculation;
  std::vector<ScheduledRequest> requests;
};

RandomSchedule random_schedule(std::uint64_t seed);
std::string text_of(const RandomSchedule& schedule);

// Effects of a planted fault. Empty functions: none.
struct PlantedFault {
  std::function<void(Scheduler&)> after_commit;
  bool moves_are_lost = false;
};

struct ScheduleResult {
  std::optional<std::string> failure;  // what did not hold, with the step
  std::int64_t steps = 0;
  // Events that the schedule has exercised.
  std::int64_t preemptions = 0, swaps = 0, moves = 0, prefix_hits = 0, refused = 0, cancelled = 0, rejected = 0;
};

// Runs a schedule to its end, all invariants checked after every call.
ScheduleResult run_schedule(const RandomSchedule& schedule, const PlantedFault& fault = {});

// The smallest schedule found that still fails: fewer requests, then shorter ones.
RandomSchedule shrink(RandomSchedule schedule, const PlantedFault& fault = {});

}  // namespace draftproof::testing
