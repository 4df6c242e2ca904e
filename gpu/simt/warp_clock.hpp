// Who has met whom in one warp: the part of "happens before" that is finer than a barrier. A vector clock per lane,
// joined whenever lanes meet in a shuffle, a ballot or __syncwarp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace draftproof::simt {

inline constexpr std::uint32_t kLanes = 32;

class WarpClock {
 public:
  // The stamp that an access made now carries.
  std::uint32_t now() const { return now_; }

  // Whether everything that `other` did up to `stamp` happens before what `lane` does now.
  bool has_seen(std::uint32_t lane, std::uint32_t other, std::uint32_t stamp) const {
    return known_[lane][other] >= stamp;
  }

  // The lanes of `mask` meet. Stamps only grow, also from block to block, so that no clock is ever cleared.
  void meet(std::uint32_t mask) {
    std::array<std::uint32_t, kLanes> joined{};
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      for (std::uint32_t other = 0; other < kLanes; ++other)
        joined[other] = std::max(joined[other], known_[lane][other]);
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (mask >> lane & 1) joined[lane] = now_;
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (mask >> lane & 1) known_[lane] = joined;
    }
    ++now_;
  }

 private:
  std::uint32_t now_ = 1;
  std::array<std::array<std::uint32_t, kLanes>, kLanes>
      known_{};  // [lane][other]: the last stamp of other seen by lane
};

}  // namespace draftproof::simt
