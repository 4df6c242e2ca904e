// The random part of a step, behind one interface: which source the blocks come from is chosen once, and the engine is
// compiled once.
#pragma once

#include <memory>

#include "engine/decode/decode_step.hpp"

namespace draftproof {

class StepSampler {
 public:
  virtual ~StepSampler() = default;
  // As in decode_step.hpp.
  virtual Token sample(const TargetRows& rows, const DecodingOptions& options, const Sequence& sequence,
                       const History* history) = 0;
  virtual void propose(Drafter& drafter, DraftCache* cache, std::span<DraftOrder> orders) = 0;
  virtual void verify(const TargetRows& rows, const DecodingOptions& options, std::int64_t vocab_size,
                      const Sequence& sequence, SpeculativeStep& step) = 0;
};

// Source: any source of addressed blocks (random/); `source` must outlive the object.
template <class Source>
class SourceSampler : public StepSampler {
 public:
  explicit SourceSampler(Source& source) : source_(source) {}

  Token sample(const TargetRows& rows, const DecodingOptions& options, const Sequence& sequence,
               const History* history) override {
    return sample_token(rows, options, sequence, history, source_, workspace_);
  }
  void propose(Drafter& drafter, DraftCache* cache, std::span<DraftOrder> orders) override {
    propose_drafts(drafter, cache, orders, source_);
  }
  void verify(const TargetRows& rows, const DecodingOptions& options, std::int64_t vocab_size, const Sequence& sequence,
              SpeculativeStep& step) override {
    verify_draft(rows, options, vocab_size, sequence, source_, step, workspace_);
  }

 private:
  Source& source_;
  StepWorkspace workspace_;
};

}  // namespace draftproof
