// A drafter that was trained on short texts: behind `trained` tokens of context every conditional rate of another model
// falls by one half with each `half` tokens more. Measured: acceptance length 1.1 at 7,000 to 20,000 tokens of a
// drafter trained to 2,048, which had 2 to 3 below.
#pragma once

#include <memory>
#include <vector>

#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

class ContextDecay final : public AcceptanceModel {
 public:
  // trained >= 0, half >= 1.
  ContextDecay(std::shared_ptr<const AcceptanceModel> model, std::int32_t trained, std::int32_t half);

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

  // The factor of the conditional rates; a step function, at most 1.1 % a step.
  double factor(std::int32_t context_len) const;

 private:
  std::size_t step_of(std::int32_t context_len) const;

  std::shared_ptr<const AcceptanceModel> model_;
  std::int32_t trained_;
  std::int32_t step_tokens_;
  std::vector<double> factors_;
  std::vector<std::uint64_t> keep_below_;
};

}  // namespace draftproof
