// The scheduler under random schedules. DRAFTPROOF_SCHEDULES=100000 runs as many instead of a few thousand.
#include "base/strict_number.hpp"
#include "tests/engine/decode/random_schedule.hpp"
#include "tests/engine/scheduler/invariants.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

std::int64_t num_schedules() {
  const char* text = std::getenv("DRAFTPROOF_SCHEDULES");
  return text == nullptr ? fewer_if_sanitized(3000) : read_integer(text, 1, 1'000'000'000).value();
}

TEST_CASE("every invariant holds in random schedules, and every slot has the KV of plain decoding", "[scheduler]") {
  ScheduleResult all;
  for (std::int64_t seed = 0; seed < num_schedules(); ++seed) {
    const RandomSchedule schedule = random_schedule(static_cast<std::uint64_t>(seed));
    const ScheduleResult result = run_schedule(schedule);
    if (result.failure) {
      const RandomSchedule smallest = shrink(schedule);
      INFO("shrunk from seed " << seed << ":\n" << text_of(smallest) << run_schedule(smallest).failure.value_or(""));
      FAIL(*result.failure);
    }
    all.steps += result.steps;
    all.preemptions += result.preemptions;
    all.swaps += result.swaps;
    all.moves += result.moves;
    all.prefix_hits += result.prefix_hits;
    all.refused += result.refused;
    all.cancelled += result.cancelled;
    all.rejected += result.rejected;
  }
  // They exercise what they are made for.
  CHECK(all.preemptions > num_schedules() / 4);
  CHECK(all.swaps > num_schedules() / 10);
  CHECK(all.moves > num_schedules());
  CHECK(all.prefix_hits > num_schedules());
  CHECK(all.refused > num_schedules() / 20);
  CHECK(all.cancelled > num_schedules() / 20);
  CHECK(all.rejected > num_schedules());
  if (std::getenv("DRAFTPROOF_SCHEDULES") != nullptr)
    WARN(num_schedules() << " schedules, " << all.steps << " steps, " << all.preemptions << " preemptions");
}

}  // namespace
}  // namespace draftproof::testing
