// One lane of panel "Speculate": the engine on a request, plainly or with a drafter, step by step, and the record of
// every step. What is recorded is looked at between two steps, when no clock of the engine runs.
#pragma once

#include <memory>

#include "engine/decode/paired_run.hpp"
#include "studies/speculate/speculate_request.hpp"

namespace draftproof {

class SpeculateLaneRun {
 public:
  // drafter: null for plain decoding. All must outlive the object.
  SpeculateLaneRun(std::span<const DecodeJob> jobs, const SpeculationPolicy& policy, TextModel& model,
                   Drafter* drafter);

  bool ended() const { return lane_.ended; }
  // One step of all outputs. Errors: what made an output impossible.
  void step();
  // All so far. The steps are shared, not copied.
  SpeculateLane lane() const;
  const SpeculateLane& steps() const { return lane_; }

 private:
  void record(const StepPlan& plan, const StepOutcome& outcome);
  void record_draft(SpeculateStep& step);
  std::vector<TextPiece> text() const;

  TextModel& model_;
  DecodeRun run_;
  SpeculateLane lane_;
  std::shared_ptr<SpeculateStep> step_;     // the one under way
  const ActiveRequest* emitted_ = nullptr;  // the shown output, where it emitted in this step
  std::size_t num_emitted_ = 0;
  TargetRows verified_;  // of the step verified last
  TargetRows rows_;      // of the shown output, with speculation
  StepWorkspace workspace_;
};

}  // namespace draftproof
