// A recorded run once more: the target computes the recorded tokens, and runners of a head are shown what the engine's
// runner was shown (chunks, shared prefixes, accepted and rejected drafts) and draft the recorded tokens, whatever they
// would propose. What their rows are after these drafts, they report themselves (HeadDrafter::on_row).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/heads/lab/recorded_run.hpp"
#include "engine/transformer/transformer_model.hpp"

namespace draftproof {

class RecordedReplay {
 public:
  // requests: runs in this order, whose accounts add up (accounting_faults); they and `target` must outlive the object.
  RecordedReplay(TransformerModel& target, std::span<const DraftedRequest> requests);

  // A runner: a HeadDrafter that draws at temperature 1, or what stands before one. assumes_sharing: where the run does
  // not record cached tokens, all whole blocks that an earlier prompt has in common are taken for found.
  void add(Drafter& drafter, bool assumes_sharing);
  // One request, by all runners; its number is that of the rows. Once each, in order.
  void run(std::size_t request);

 private:
  struct Runner {
    Drafter* drafter;
    bool assumes_sharing;
    std::unique_ptr<DraftCache> cache;
    std::vector<std::vector<std::int32_t>> blocks;  // of requests
    std::int64_t begin = 0;                         // of the request under way: what the prefix cache spared
  };
  struct Pass {
    std::int64_t begin, end;
    bool samples;
    std::int64_t rejected_row = -1;  // of rejected_
  };

  std::int64_t shared_by(const Runner& runner, std::size_t request, std::size_t& owner) const;
  void compute_features(const DraftedRequest& request);
  void show(const Pass& pass, std::size_t request);
  void draft(const DraftedStep& step, std::size_t request);

  TransformerModel& target_;
  std::span<const DraftedRequest> requests_;
  std::vector<std::vector<std::int32_t>> own_blocks_;  // of requests
  std::int32_t num_blocks_ = 0;
  std::vector<std::int64_t> computed_;  // tokens of requests, by now
  std::vector<Runner> runners_;
  std::vector<std::int32_t> layers_;  // that some runner reads
  // State of the request under way.
  std::vector<float> hidden_;               // [tokens, layers, width]
  std::vector<float> rejected_;             // [steps with a rejected draft of a chain, layers, width]
  std::vector<std::int64_t> rejected_row_;  // [steps] row of rejected_, or -1
};

}  // namespace draftproof
