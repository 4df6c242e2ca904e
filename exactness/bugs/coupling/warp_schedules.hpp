// All orders in which the warps of a thread block can run a short program over shared memory: what a race checker looks
// for on a device, found by enumeration on a host.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace draftproof {

// An instruction of every warp; null is a barrier, which a warp passes when all have arrived at it.
template <class State>
using WarpInstruction = std::function<void(State&, std::size_t warp)>;

// Calls `done(state)` at the end of every schedule. The state is copied at every branch.
template <class State, class Done>
class WarpSchedules {
 public:
  WarpSchedules(const std::vector<WarpInstruction<State>>& program, std::size_t num_warps, Done done)
      : program_(program), num_warps_(num_warps), done_(std::move(done)) {}

  void run(const State& start) { continue_from(start, std::vector<std::size_t>(num_warps_, 0)); }

 private:
  // next [num_warps]: each warp's next instruction.
  void continue_from(const State& state, std::vector<std::size_t> next) {
    const auto [slowest, fastest] = std::minmax_element(next.begin(), next.end());
    if (*slowest == program_.size()) return done_(state);
    if (*slowest == *fastest && !program_[*slowest]) {  // all have arrived at a barrier
      for (std::size_t& instruction : next) ++instruction;
      return continue_from(state, std::move(next));
    }
    for (std::size_t warp = 0; warp < num_warps_; ++warp) {
      if (next[warp] == program_.size() || !program_[next[warp]]) continue;
      State after = state;
      program_[next[warp]](after, warp);
      ++next[warp];
      continue_from(after, next);
      --next[warp];
    }
  }

  const std::vector<WarpInstruction<State>>& program_;
  std::size_t num_warps_;
  Done done_;
};

}  // namespace draftproof
