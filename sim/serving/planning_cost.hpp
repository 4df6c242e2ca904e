// What the goodput policy takes a step to cost: the cost model of the run, at the context lengths of the batch. A
// decision asks for hundreds of row counts, so the model is asked at a few of them and the rest lies on straight lines
// between.
#pragma once

#include <array>
#include <cstdint>

#include "reference/engine/step_cost.hpp"
#include "sim/cost/cost_model.hpp"

namespace draftproof {

class PlanningCost final : public StepCost {
 public:
  // drafts_max: the most that the policy gives a request. one_pass: as in SimulatedDrafting.
  PlanningCost(const CostModel& cost, std::int32_t drafts_max, bool one_pass)
      : cost_(cost), drafts_max_(drafts_max), one_pass_(one_pass) {}

  // Cached tokens per request and rows per token (2 under guidance) of the last step; before every plan.
  void set_context(double kv_tokens_per_request);

  double target_ns(std::int64_t num_tokens, std::int64_t batch) const override;
  double draft_ns(std::int32_t passes, std::int64_t batch) const override;

 private:
  double exact_target_ns(std::int64_t num_tokens, std::int64_t batch) const;

  const CostModel& cost_;
  std::int32_t drafts_max_;
  bool one_pass_;
  double kv_tokens_per_request_ = 0.0;

  // The lines of one decision: target_ns at least_ + i step_ rows, i = 0 .. kLines.
  static constexpr std::int32_t kLines = 16;
  mutable std::int64_t batch_ = -1;
  mutable std::int64_t least_ = 0;
  mutable std::int64_t step_ = 1;
  mutable double lines_per_row_ = 1.0;
  mutable std::array<double, kLines + 1> ns_{};
};

}  // namespace draftproof
