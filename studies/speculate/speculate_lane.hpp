// One lane of panel "Speculate": the engine on a request, plainly or with a drafter, step by step, and the record of
// every step. What is recorded is looked at between two steps, when no clock of the engine runs.
#pragma once

#include <memory>

#include "engine/decode/engine.hpp"
#include "studies/speculate/speculate_request.hpp"

namespace draftproof {

// Shows the rows that the sampler was given last; changes nothing.
class ObservedSampler final : public StepSampler {
 public:
  Token sample(const TargetRows& rows, const DecodingOptions& options, const Sequence& sequence,
               const History* history) override {
    return sampler_.sample(rows, options, sequence, history);
  }
  void propose(Drafter& drafter, const DraftContext& context, const DraftPlan& plan, const DecodingOptions& options,
               SpeculativeStep& step) override {
    sampler_.propose(drafter, context, plan, options, step);
  }
  void verify(const TargetRows& rows, const DecodingOptions& options, std::int64_t vocab_size, const Sequence& sequence,
              SpeculativeStep& step) override {
    sampler_.verify(rows, options, vocab_size, sequence, step);
    verified_ = rows;
  }
  // Valid until the next forward pass.
  const TargetRows& verified() const { return verified_; }

 private:
  PhiloxSource source_;
  SourceSampler<PhiloxSource> sampler_{source_};
  TargetRows verified_;
};

class SpeculateLaneRun {
 public:
  // drafter: null for plain decoding. All must outlive the object.
  SpeculateLaneRun(const SpeculateSettings& settings, const SpeculateRequest& request, TextModel& model,
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
  std::string label_of(Token token) const;

  TextModel& model_;
  bool drafts_;
  ObservedSampler sampler_;
  Engine engine_;
  SpeculateLane lane_;
  std::shared_ptr<SpeculateStep> step_;     // the one under way
  const ActiveRequest* emitted_ = nullptr;  // the shown output, where it emitted in this step
  std::size_t num_emitted_ = 0;
  TargetRows rows_;  // of the shown output, with speculation
  StepWorkspace workspace_;
};

}  // namespace draftproof
