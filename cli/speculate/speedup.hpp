// How many times faster one way of decoding is than another, from paired measurements.
#pragma once

#include <optional>
#include <span>

namespace draftproof {

// Milliseconds per token of the same prompts, measured one right after the other.
struct PairedTime {
  double plain_ms;
  double speculative_ms;
};

struct Speedup {
  double ratio;  // geometric mean of plain / speculative
  // 95 % confidence interval, from Student's t on the logarithms of the ratios; needs two pairs.
  std::optional<double> low;
  std::optional<double> high;
};

// At least one pair; times above 0.
Speedup estimate_speedup(std::span<const PairedTime> pairs);

}  // namespace draftproof
