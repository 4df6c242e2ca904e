// Acceptances as they were recorded: request r of a run is request r mod n of the recording.
#pragma once

#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/recording.hpp"

namespace draftproof {

class Replay final : public AcceptanceModel {
 public:
  // delay: a step behind p output tokens finds what is recorded for p - delay. 0 is what the recording means; its
  // authors' own simulation has 1. Error (usage): a recording without requests.
  explicit Replay(const AcceptanceRecording& recording, std::int32_t delay = 0);

  AcceptanceState begin(std::uint64_t request) const override {
    return {0, static_cast<std::int32_t>(request % (begins_.size() - 1)), 0};
  }
  // 0 behind the end of what is recorded.
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                        std::int32_t depth) const override;
  // Over all places that are recorded.
  std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const override;
  // Over the steps with `depth` drafts through all requests, each from its first token to the end of what is recorded.
  std::vector<double> survival_in_run(std::int32_t nodes, std::int32_t depth,
                                      std::int32_t context_len = 0) const override;

 private:
  std::int32_t delay_;
  std::vector<std::size_t> begins_;     // [n + 1] of the requests
  std::vector<std::uint8_t> accepted_;  // of all requests, one behind the other
};

}  // namespace draftproof
