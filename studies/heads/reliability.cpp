#include "studies/heads/reliability.hpp"

#include <algorithm>
#include <cmath>

namespace draftproof {

Reliability reliability_of(std::span<const JudgedConfidence> judged) {
  Reliability reliability;
  for (const JudgedConfidence& one : judged) {
    const auto index = static_cast<std::size_t>(one.confidence * static_cast<double>(kReliabilityBins));
    ReliabilityBin& bin = reliability.bins[std::min(index, kReliabilityBins - 1)];
    bin.mean_confidence += one.confidence;
    ++bin.count;
    bin.accepted += one.accepted ? 1 : 0;
  }
  for (ReliabilityBin& bin : reliability.bins) {
    bin.interval = clopper_pearson(bin.accepted, bin.count, kReliabilityLevel);
    if (bin.count == 0) continue;
    const auto count = static_cast<double>(bin.count);
    reliability.count += bin.count;
    reliability.accepted += bin.accepted;
    reliability.mean_confidence += bin.mean_confidence;
    bin.mean_confidence /= count;
    bin.rate = static_cast<double>(bin.accepted) / count;
    reliability.ece += count / static_cast<double>(judged.size()) * std::abs(bin.rate - bin.mean_confidence);
  }
  if (reliability.count == 0) return reliability;
  reliability.mean_confidence /= static_cast<double>(reliability.count);
  reliability.rate = static_cast<double>(reliability.accepted) / static_cast<double>(reliability.count);
  return reliability;
}

}  // namespace draftproof
