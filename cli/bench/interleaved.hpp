// Two ways to do the same work in one process, a step of each in turns, so that whatever the machine does meanwhile
// happens to both: on the clock, in processor time and in retired instructions.
//
//   turn      the side that has emitted fewer tokens; of equal ones the two begin in turns
//   round     all the work, both ways; a pair of sums
//   interval  95 %, Student's t on the logarithms of the rounds' ratios (cli/shared/speedup.hpp): rounds are of the
//             same requests, so what varies is the machine, and what a policy makes of its times
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "cli/shared/speedup.hpp"

namespace draftproof {

struct Usage {
  double clock_ns = 0.0;
  double cpu_ns = 0.0;                 // of all threads of the process
  std::optional<double> instructions;  // likewise, retired outside the kernel
};

// What the process has used so far. Made before the threads whose instructions it counts.
class UsageMeter {
 public:
  UsageMeter();
  ~UsageMeter();
  UsageMeter(const UsageMeter&) = delete;
  UsageMeter& operator=(const UsageMeter&) = delete;

  Usage now() const;
  // Why instructions are not counted; empty: they are.
  const std::string& why_no_instructions() const { return missing_; }

 private:
  int counter_ = -1;  // of perf_event_open(2)
  std::string missing_;
};

// One step of a side: the tokens that it emitted; nothing where nothing was left to do.
using SideStep = std::function<std::optional<std::int64_t>()>;

// What the two sides took for one round.
using SideUsages = std::array<Usage, 2>;
SideUsages run_interleaved(const std::array<SideStep, 2>& sides, bool second_begins, const std::function<Usage()>& now);

// How many times cheaper the second side is.
struct UsageRatios {
  Speedup clock, cpu;
  std::optional<Speedup> instructions;
};
// At least one round.
UsageRatios usage_ratios(std::span<const SideUsages> rounds);

}  // namespace draftproof
