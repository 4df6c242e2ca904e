#include "engine/scheduler/speculation_switch.hpp"

#include <catch2/catch.hpp>

#include "tests/support/test_random.hpp"

namespace draftproof::testing {
namespace {

// Steps of a machine on which drafting makes a step `cost` times as long and emits `gain` times as many tokens. Returns
// tokens per time over all steps, of plain decoding 1.
double speed(double gain, double cost, std::int64_t batch, int steps, double noise, SpeculationSwitch& by_times) {
  TestRandom random(static_cast<std::uint64_t>(batch) * 31 + 7);
  double tokens = 0.0;
  double time = 0.0;
  for (int i = 0; i < steps; ++i) {
    const bool drafting = by_times.drafts(batch);
    double emitted = static_cast<double>(batch);
    // Each request's draft passes or does not.
    for (std::int64_t r = 0; drafting && r < batch; ++r) emitted += random.uniform() < (gain - 1.0) ? 1.0 : 0.0;
    const double took = 1e6 * (drafting ? cost : 1.0) * (1.0 + noise * random.uniform());
    by_times.observe(batch, drafting, static_cast<std::int64_t>(emitted), static_cast<std::int64_t>(took));
    tokens += emitted / static_cast<double>(batch);
    time += took / (1e6 * (1.0 + noise / 2.0));
  }
  return tokens / time;
}

TEST_CASE("where drafts lose they are switched off, and what looking costs is a few hundredths") {
  for (const std::int64_t batch : {1, 4, 8, 16, 24, 32}) {
    INFO("batch " << batch);
    SpeculationSwitch by_times;
    CHECK(speed(1.0, 1.25, batch, 200, 0.1, by_times) > 0.93);
    CHECK(speed(1.0, 1.25, batch, 1000, 0.1, by_times) > 0.98);
  }
}

TEST_CASE("where drafts gain they stay on, and nearly all of the gain stays") {
  for (const std::int64_t batch : {1, 4, 16, 32}) {
    INFO("batch " << batch);
    SpeculationSwitch by_times;
    CHECK(speed(1.6, 1.2, batch, 1000, 0.1, by_times) > 0.96 * 1.6 / 1.2);
  }
}

TEST_CASE("what has changed is found again") {
  SpeculationSwitch by_times;
  CHECK(speed(1.0, 1.3, 8, 2000, 0.05, by_times) > 0.98);
  CHECK(speed(1.8, 1.1, 8, 3000, 0.05, by_times) > 0.8 * 1.8 / 1.1);
  CHECK(speed(1.0, 1.3, 8, 2000, 0.05, by_times) > 0.95);
}

TEST_CASE("classes of batch sizes are judged by themselves, and one bad time does not decide") {
  SpeculationSwitch by_times;
  CHECK(speed(1.0, 1.4, 32, 1000, 0.05, by_times) > 0.97);
  CHECK(speed(1.6, 1.1, 1, 1000, 0.05, by_times) > 0.95 * 1.6 / 1.1);
  by_times.observe(1, true, 1, 1'000'000'000);
  int drafting = 0;
  for (int i = 0; i < 100; ++i) drafting += by_times.drafts(1) ? 1 : 0;
  CHECK(drafting > 80);
}

}  // namespace
}  // namespace draftproof::testing
