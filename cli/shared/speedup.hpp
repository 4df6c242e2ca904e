// How many times faster one way of decoding is than another, from paired measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace draftproof {

// Time of decoding: the steps that computed prompts, the others, and the tokens that they emitted.
struct DecodedTime {
  double prompt_ms;
  std::int64_t prompt_tokens;
  double ms;
  std::int64_t tokens;
};

// Milliseconds per token of the same prompts, measured one right after the other.
struct PairedTime {
  double plain_ms;
  double speculative_ms;
};

// Whole requests with their prompts, both of as many tokens as plain decoding emitted: above temperature 0 outputs
// differ in length, and the prompt would weigh more on the shorter one. Steps that emitted nothing behind the prompts
// count as plain ones.
PairedTime paired_time(const DecodedTime& plain, const DecodedTime& speculative);

struct Speedup {
  double ratio;  // geometric mean of plain / speculative
  // 95 % confidence interval, from Student's t on the logarithms of the ratios; needs two pairs.
  std::optional<double> low;
  std::optional<double> high;
};

// At least one pair; times above 0.
Speedup estimate_speedup(std::span<const PairedTime> pairs);

}  // namespace draftproof
