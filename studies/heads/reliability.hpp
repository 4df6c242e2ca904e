// Confidence against acceptance: a reliability diagram and its expected calibration error (ECE; Guo et al. 1706.04599,
// equation 3), with ten bins of equal width over [0, 1], the last one closed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "exactness/statistics/binomial_interval.hpp"

namespace draftproof {

inline constexpr std::size_t kReliabilityBins = 10;
inline constexpr double kReliabilityLevel = 0.95;  // of the bins' intervals, slots counted as independent

struct JudgedConfidence {
  double confidence = 0.0;  // in [0, 1]
  bool accepted = false;
};

struct ReliabilityBin {
  std::int64_t count = 0, accepted = 0;
  double mean_confidence = 0.0, rate = 0.0;  // 0 where nothing was counted
  Interval interval;                         // of the rate
};

struct Reliability {
  std::array<ReliabilityBin, kReliabilityBins> bins;
  std::int64_t count = 0, accepted = 0;
  double mean_confidence = 0.0, rate = 0.0;  // likewise
  double ece = 0.0;                          // sum over bins of share x |rate - mean confidence|
};

Reliability reliability_of(std::span<const JudgedConfidence> judged);

}  // namespace draftproof
