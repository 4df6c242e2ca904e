// One policy's run as the panel "Serving timeline" draws it: its steps, and when its requests waited, began and ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/serving/simulation.hpp"
#include "studies/job.hpp"
#include "studies/speculate/step_levels.hpp"

namespace draftproof {

// A million boxes with their levels take some 200 MB; what comes later is not recorded.
inline constexpr std::int64_t kTimelineStepsMax = 1'000'000;
inline constexpr std::size_t kTimelineRequestsMax = 1'000'000;

struct RequestLane {
  std::uint64_t number = 0;  // of the workload
  std::int64_t arrival_ns = 0, begin_ns = 0, first_token_ns = 0, last_token_ns = 0;
  std::int32_t prompt_len = 0, output_len = 0;
  std::int32_t draft_tokens = 0, accepted_tokens = 0, preemptions = 0;
};

struct PolicyTimeline {
  std::string policy;
  StepLevels steps;
  std::vector<RequestLane> requests;  // by arrival
  std::int64_t longest_ns = 0;        // from a request's arrival to its last token

  // Requests that are in the system at some time in [from_ns, to_ns], at most `most`, evenly spread.
  std::vector<const RequestLane*> requests_between(std::int64_t from_ns, std::int64_t to_ns, std::size_t most) const;
};

class TimelineRecorder final : public ServingObserver {
 public:
  // `ended` counts the requests of all policies together, for progress; of `requests` in all.
  TimelineRecorder(const std::string& policy, Job& job, std::int64_t& ended, std::int64_t requests)
      : job_(job), ended_(ended), requests_(requests) {
    timeline_.policy = policy;
  }

  // Cancelled, where the job was.
  void on_step(const StepPlan& plan, const StepOutcome& outcome, const Scheduler& scheduler,
               const SimulatedBackend& backend) override;
  void on_end(std::uint64_t request, const RequestProgress& progress) override;

  // Moves the recording out; nothing is left here.
  PolicyTimeline take();

 private:
  PolicyTimeline timeline_;
  Job& job_;
  std::int64_t& ended_;
  std::int64_t requests_;
};

}  // namespace draftproof
