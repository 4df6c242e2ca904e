// Step cost as the goodput policy assumes it: the cost of the run, at the context lengths of the batch. A decision asks
// for hundreds of row counts, and the next one for nearly the same, so the cost is asked at a few of them and its
// answers are kept; the rest lies on straight lines between.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/scheduler/step_cost.hpp"

namespace draftproof {

class PlanningCost final : public StepCost {
 public:
  // drafts_max: the most that the policy gives a request. one_pass: as in SimulatedDrafting.
  PlanningCost(const StepCost& cost, std::int32_t drafts_max, bool one_pass)
      : cost_(cost), drafts_max_(drafts_max), one_pass_(one_pass) {}

  // Cached tokens per request in the last step; before every plan. A context that has hardly grown changes no decision.
  void set_context(double kv_tokens_per_request);

  // Loads are those of planned_pass() and planned_drafting().
  double target_ns(const PassLoad& load) const override;
  double draft_ns(const DraftLoad& load) const override { return drafting(load.requests, load.passes).draft_ns; }
  double overhead_ns(std::int64_t requests, const DraftLoad& load) const override {
    return drafting(requests, load.passes).overhead_ns;
  }

 private:
  struct Drafting {
    double draft_ns = -1.0;
    double overhead_ns = -1.0;
  };
  // Answers for one batch size. Negative: not asked for yet.
  struct Known {
    std::int64_t batch = -1;
    std::int64_t rows_apart = 1;  // of the ends of the lines
    double lines_per_row = 1.0;
    std::vector<double> target_ns;   // at i x rows_apart rows
    std::vector<Drafting> drafting;  // of i passes
  };

  Known& known_of(std::int64_t batch) const;
  double end_ns(Known& known, std::size_t end) const;
  const Drafting& drafting(std::int64_t batch, std::int32_t passes) const;

  const StepCost& cost_;
  std::int32_t drafts_max_;
  bool one_pass_;
  double kv_tokens_per_request_ = 0.0;
  // Indexed by batch size, modulo.
  mutable std::array<Known, 64> known_;
};

}  // namespace draftproof
