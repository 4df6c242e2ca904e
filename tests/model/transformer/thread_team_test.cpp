#include "reference/model/transformer/thread_team.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>

using namespace draftproof;

TEST_CASE("every thread of a team runs the body, and a barrier shows each what the others wrote before it") {
  for (const int threads : {1, 2, 5}) {
    INFO("threads: " << threads);
    ThreadTeam team(threads);
    CHECK(team.threads() == threads);
    std::vector<std::int64_t> values(static_cast<std::size_t>(threads), 0);
    std::vector<std::int64_t> mismatches(static_cast<std::size_t>(threads), 0);
    constexpr int kRuns = 50;
    constexpr int kPhases = 20;
    for (int run = 0; run < kRuns; ++run) {
      team.run([&](int thread) {
        for (int phase = 0; phase < kPhases; ++phase) {
          ++values[static_cast<std::size_t>(thread)];
          team.barrier();
          const std::int64_t expected = std::int64_t{run} * kPhases + phase + 1;
          for (const std::int64_t value : values) mismatches[static_cast<std::size_t>(thread)] += value != expected;
          team.barrier();
        }
      });
    }
    for (const std::int64_t value : values) CHECK(value == kRuns * kPhases);
    CHECK(std::accumulate(mismatches.begin(), mismatches.end(), std::int64_t{0}) == 0);
  }
}

TEST_CASE("a team that sleeps wakes up, and one that never ran ends") {
  const ThreadTeam idle(3);
  ThreadTeam team(2);
  std::atomic<int> calls = 0;
  for (int run = 0; run < 3; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    team.run([&](int) { ++calls; });
  }
  CHECK(calls == 6);
}
