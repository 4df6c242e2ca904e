#include "cli/bench/interleaved.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace draftproof {
namespace {

double ns_on(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

void add(Usage& sum, const Usage& begin, const Usage& end) {
  sum.clock_ns += end.clock_ns - begin.clock_ns;
  sum.cpu_ns += end.cpu_ns - begin.cpu_ns;
  if (begin.instructions && end.instructions)
    sum.instructions = sum.instructions.value_or(0.0) + *end.instructions - *begin.instructions;
}

}  // namespace

UsageMeter::UsageMeter() {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_HARDWARE;
  event.config = PERF_COUNT_HW_INSTRUCTIONS;
  event.inherit = 1;
  event.exclude_kernel = 1;
  event.exclude_hv = 1;
  counter_ = static_cast<int>(syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (counter_ < 0) missing_ = std::string("perf_event_open: ") + std::strerror(errno);
}

UsageMeter::~UsageMeter() {
  if (counter_ >= 0) close(counter_);
}

Usage UsageMeter::now() const {
  Usage usage{ns_on(CLOCK_MONOTONIC), ns_on(CLOCK_PROCESS_CPUTIME_ID), std::nullopt};
  std::uint64_t count = 0;
  if (counter_ >= 0 && read(counter_, &count, sizeof count) == sizeof count)
    usage.instructions = static_cast<double>(count);
  return usage;
}

SideUsages run_interleaved(const std::array<SideStep, 2>& sides, bool second_begins,
                           const std::function<Usage()>& now) {
  SideUsages usages;
  std::array<std::int64_t, 2> tokens{};
  std::array<bool, 2> ended{};
  std::size_t begins = second_begins ? 1 : 0;
  Usage before = now();
  while (!ended[0] || !ended[1]) {
    std::size_t side = tokens[0] < tokens[1] ? 0 : 1;
    if (tokens[0] == tokens[1]) {
      side = begins;
      begins = 1 - begins;
    }
    if (ended[side]) side = 1 - side;
    const std::optional<std::int64_t> emitted = sides[side]();
    const Usage after = now();
    add(usages[side], before, after);
    before = after;
    tokens[side] += emitted.value_or(0);
    ended[side] = !emitted;
  }
  return usages;
}

UsageRatios usage_ratios(std::span<const SideUsages> rounds) {
  const auto of = [&](auto value) {
    std::vector<PairedTime> pairs;
    for (const SideUsages& round : rounds) pairs.push_back({value(round[0]), value(round[1])});
    return estimate_speedup(pairs);
  };
  UsageRatios ratios{of([](const Usage& usage) { return usage.clock_ns; }),
                     of([](const Usage& usage) { return usage.cpu_ns; }), std::nullopt};
  if (rounds.front()[0].instructions && rounds.front()[1].instructions)
    ratios.instructions = of([](const Usage& usage) { return usage.instructions.value_or(0.0); });
  return ratios;
}

}  // namespace draftproof
