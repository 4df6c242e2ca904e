// The read bandwidth of this machine's memory: the yardstick of everything that has to stream its input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace draftproof {

// A buffer much larger than the last-level cache.
class BandwidthProbe {
 public:
  explicit BandwidthProbe(std::size_t bytes) : words_(bytes / sizeof(std::uint64_t), 1) {}

  std::uint64_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

  // Reads the whole buffer once, a contiguous part per thread. What the caches held before is gone afterwards.
  void read(int threads);

 private:
  std::vector<std::uint64_t> words_;  // all 1: their sum, which must come out right, says that every word was read
};

}  // namespace draftproof
