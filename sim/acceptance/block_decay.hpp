// A head that was trained to draft a block of so many tokens: each draft beyond it makes all slots worse, since the
// whole block is then one that the head has never seen. Of a draft of K > trained tokens every conditional rate of
// another model is multiplied by factor^(K - trained), so that the acceptance length may fall where K rises. Measured:
// DSpark of DeepSeek-V4-Pro, 3.73 tokens a step with 7 drafts and 3.47 with 8 (sim/presets/drafters).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

class BlockDecay final : public AcceptanceModel {
 public:
  // trained >= 1, factor in [0, 1].
  BlockDecay(std::shared_ptr<const AcceptanceModel> model, std::int32_t trained, double factor);

  AcceptanceState begin(std::uint64_t request) const override { return model_->begin(request); }
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                        std::int32_t depth) const override;
  bool gives_confidences() const override { return model_->gives_confidences(); }
  std::int32_t accepted_with_confidences(AcceptanceState& state, AcceptancePlace place, std::int32_t depth,
                                         std::vector<float>& confidences) const override;
  std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const override;
  // The rates of the other model in a run of its own, thinned at the end.
  std::vector<double> survival_in_run(std::int32_t nodes, std::int32_t depth,
                                      std::int32_t context_len = 0) const override;

  // The factor of the conditional rates of a draft of `depth` levels.
  double factor(std::int32_t depth) const { return factors_[static_cast<std::size_t>(depth)]; }

 private:
  std::shared_ptr<const AcceptanceModel> model_;
  std::array<double, kAcceptanceDepthMax + 1> factors_;
};

}  // namespace draftproof
