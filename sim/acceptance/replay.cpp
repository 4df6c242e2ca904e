#include "sim/acceptance/replay.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace draftproof {
namespace {

// How many steps accepted i drafts or more -> shares of the steps.
std::vector<double> shares(const std::vector<std::int64_t>& counts, std::int64_t steps) {
  std::vector<double> survival;
  for (const std::int64_t count : counts)
    survival.push_back(steps > 0 ? static_cast<double>(count) / static_cast<double>(steps) : 0.0);
  return survival;
}

}  // namespace

Replay::Replay(const AcceptanceRecording& recording, std::int32_t delay) : delay_(delay), begins_{0} {
  if (recording.requests.empty()) throw usage_error("replay", "the recording has no request; expected one or more");
  for (const RecordedRequest& request : recording.requests) {
    accepted_.insert(accepted_.end(), request.accepted.begin(), request.accepted.end());
    begins_.push_back(accepted_.size());
  }
}

std::int32_t Replay::accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                              std::int32_t depth) const {
  require_draft_shape(nodes, depth);
  const auto row = static_cast<std::size_t>(state.choice);
  const std::int32_t at = place.output_len - delay_;
  if (at < 0 || static_cast<std::size_t>(at) >= begins_[row + 1] - begins_[row]) return 0;
  return std::min<std::int32_t>(accepted_[begins_[row] + static_cast<std::size_t>(at)], depth);
}

std::vector<double> Replay::survival(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(depth));
  for (const std::uint8_t accepted : accepted_)
    for (std::size_t i = 0; i < std::min<std::size_t>(accepted, counts.size()); ++i) ++counts[i];
  return shares(counts, std::ssize(accepted_));
}

std::vector<double> Replay::survival_in_run(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(depth));
  std::int64_t steps = 0;
  for (std::size_t row = 0; row + 1 < begins_.size(); ++row) {
    // The first token is the prefill's.
    for (std::size_t at = begins_[row] + static_cast<std::size_t>(1 - delay_); at < begins_[row + 1]; ++steps) {
      const std::size_t n = std::min<std::size_t>(accepted_[at], counts.size());
      for (std::size_t i = 0; i < n; ++i) ++counts[i];
      at += n + 1;
    }
  }
  return shares(counts, steps);
}

}  // namespace draftproof
