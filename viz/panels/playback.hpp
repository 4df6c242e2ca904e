// Which moment of a recorded run is shown: the newest, as it is computed, or one that moves at a pace of its own.
#pragma once

#include <algorithm>
#include <cstdint>

namespace draftproof {

struct Playback {
  bool paused = false;
  double pace = 0.0;     // of the run's clock to that of the wall; 0: whatever has been computed is shown
  double time_ns = 0.0;  // the moment

  // A new run begins.
  void restart() {
    paused = false;
    time_ns = 0.0;
  }
  // A frame later; the run is known until known_ns.
  void advance(double wall_s, std::int64_t known_ns) {
    const auto known = static_cast<double>(known_ns);
    if (!paused) time_ns = pace > 0.0 ? time_ns + 1e9 * wall_s * pace : known;
    time_ns = std::min(time_ns, known);
  }
  void stop_at(std::int64_t moment_ns) {
    paused = true;
    time_ns = static_cast<double>(moment_ns);
  }
  std::int64_t moment_ns() const { return static_cast<std::int64_t>(time_ns); }
};

}  // namespace draftproof
