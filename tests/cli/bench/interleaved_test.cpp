// Intervals against machines that are made up, whose noise and whose planted slowdown are known.
#include "cli/bench/interleaved.hpp"

#include "tests/support/test.hpp"

namespace {

// A step takes 1 ms, what the machine does for seconds at a time makes it half as long again, and now and then
// something else has the processor. Steps of the second side take `slower` times as long.
class NoisyMachine {
 public:
  NoisyMachine(double slower, std::uint64_t seed) : slower_(slower), random_(seed) {}

  UsageRatios ratios_of(int rounds, int steps) {
    std::vector<SideUsages> usages;
    for (int round = 0; round < rounds; ++round) {
      const auto side = [&](double factor) -> SideStep {
        return [this, factor, left = steps]() mutable -> std::optional<std::int64_t> {
          if (left-- == 0) return std::nullopt;
          const double drift = 1.25 + 0.25 * std::sin(ns_ / 7e8);
          const double spike = random_.uniform() < 0.01 ? 1e6 : 0.0;
          ns_ += 1e6 * factor * drift * (1.0 + 0.1 * random_.uniform()) + spike;
          return 1;
        };
      };
      usages.push_back(run_interleaved({side(1.0), side(slower_)}, round % 2 == 1, [&] {
        return Usage{ns_, ns_, std::nullopt};
      }));
    }
    return usage_ratios(usages);
  }

 private:
  double slower_;
  TestRandom random_;
  double ns_ = 0.0;
};

TEST_CASE("intervals of interleaved rounds hold the planted slowdown as often as they say, and plain beside plain 1") {
  constexpr int kTrials = 200;
  for (const double slower : {1.0, 1.03}) {
    int holds = 0;
    int holds_one = 0;
    double widest = 0.0;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      const Speedup clock = NoisyMachine(slower, trial + 1).ratios_of(10, 200).clock;
      REQUIRE(clock.low);
      REQUIRE(clock.high);
      holds += *clock.low <= 1.0 / slower && 1.0 / slower <= *clock.high ? 1 : 0;
      holds_one += *clock.low <= 1.0 && 1.0 <= *clock.high ? 1 : 0;
      widest = std::max(widest, *clock.high - *clock.low);
    }
    INFO("slower by " << slower);
    CHECK(holds >= 0.95 * kTrials - 3.0 * std::sqrt(0.95 * 0.05 * kTrials));
    CHECK(widest < 0.04);
    if (slower > 1.0) CHECK(holds_one < 0.05 * kTrials);
  }
}

TEST_CASE("the side that has emitted fewer tokens is stepped next, and the two begin in turns") {
  std::vector<int> order;
  const auto side = [&](int name, std::int64_t a_step, int steps) -> SideStep {
    return [&order, name, a_step, left = steps]() mutable -> std::optional<std::int64_t> {
      if (left-- == 0) return std::nullopt;
      order.push_back(name);
      return a_step;
    };
  };
  double ns = 0.0;
  const auto now = [&] { return Usage{ns += 1.0, 0.0, std::nullopt}; };
  const SideUsages usages = run_interleaved({side(0, 1, 6), side(1, 2, 3)}, false, now);
  CHECK(order == std::vector<int>{0, 1, 0, 1, 0, 0, 0, 1, 0});
  CHECK(usages[0].clock_ns == 6.0 + 1.0);  // the last look, which finds nothing
  CHECK(usages[1].clock_ns == 3.0 + 1.0);
  order.clear();
  run_interleaved({side(0, 1, 2), side(1, 1, 2)}, true, now);
  CHECK(order == std::vector<int>{1, 0, 0, 1});
}

TEST_CASE("work that is three tenths longer is seen in processor time, and in instructions where they are counted") {
  const UsageMeter meter;
  const auto ratios_of = [&](int longer) {
    std::vector<SideUsages> rounds;
    for (int round = 0; round < 5; ++round) {
      const auto side = [](int turns) -> SideStep {
        return [turns, left = 20]() mutable -> std::optional<std::int64_t> {
          if (left-- == 0) return std::nullopt;
          volatile int sum = 0;
          for (int i = 0; i < turns; ++i) sum = sum + i;
          return 1;
        };
      };
      rounds.push_back(run_interleaved({side(200'000), side(longer)}, round % 2 == 1, [&] { return meter.now(); }));
    }
    return usage_ratios(rounds);
  };
  const UsageRatios same = ratios_of(200'000);
  const UsageRatios longer = ratios_of(260'000);
  CHECK(std::abs(same.cpu.ratio - 1.0) < 0.1);
  CHECK(std::abs(longer.cpu.ratio * 1.3 - 1.0) < 0.1);
  CHECK(same.instructions.has_value() == meter.why_no_instructions().empty());
  if (same.instructions) CHECK(std::abs(same.instructions->ratio - 1.0) < 0.01);
  if (longer.instructions) CHECK(std::abs(longer.instructions->ratio * 1.3 - 1.0) < 0.02);
}

}  // namespace
