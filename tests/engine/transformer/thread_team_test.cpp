#include "engine/transformer/thread_team.hpp"

#include <chrono>

#include "tests/support/test.hpp"

TEST_CASE("a phase does every range once, and is over on every thread before the next begins") {
  for (const int threads : {1, 2, 5}) {
    INFO("threads: " << threads);
    ThreadTeam team(threads);
    CHECK(team.threads() == threads);
    constexpr std::int64_t kItems = 37;
    std::vector<std::int64_t> counts(kItems, 0);
    std::atomic<std::int64_t> mismatches = 0;
    for (std::int64_t run = 0; run < 60; ++run)
      team.run([&](int thread) {
        for (std::int64_t phase = 0; phase < 20; ++phase) {
          // Ranges of 2 or 3 write; then each of the next phase reads what others wrote.
          team.for_ranges(thread, kItems, 3, [&](std::int64_t begin, std::int64_t end) {
            if (end - begin < 2 || end - begin > 3) ++mismatches;
            for (std::int64_t i = begin; i < end; ++i) ++counts[static_cast<std::size_t>(i)];
          });
          team.for_ranges(thread, 0, 1, [&](std::int64_t, std::int64_t) { ++mismatches; });
          team.for_ranges(thread, kItems, 1, [&](std::int64_t begin, std::int64_t) {
            if (counts[static_cast<std::size_t>(kItems - 1 - begin)] != run * 20 + phase + 1) ++mismatches;
          });
        }
      });
    CHECK(mismatches == 0);
    CHECK(counts == std::vector<std::int64_t>(kItems, 60 * 20));
  }
}

TEST_CASE("a team that sleeps wakes up, and one that never ran ends") {
  const ThreadTeam idle(3);
  ThreadTeam team(2);
  std::atomic<int> calls = 0;
  for (int run = 0; run < 3; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    // Long enough for the other thread to come.
    team.run([&](int thread) {
      team.for_ranges(thread, 2, 1, [&](std::int64_t, std::int64_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        calls += thread == 1 ? 100 : 1;
      });
    });
  }
  CHECK(calls >= 102);
}
