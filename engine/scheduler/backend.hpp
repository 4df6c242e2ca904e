// The part that computes: models and drafters on a wall clock, or a simulation on its own.
#pragma once

#include <span>

#include "engine/scheduler/step_plan.hpp"

namespace draftproof {

class Backend {
 public:
  virtual ~Backend() = default;
  // Does the swaps of the plan, then drafts, computes and verifies as step_plan.hpp says. `outcome` is the last one and
  // is overwritten whole.
  virtual void run(const StepPlan& plan, StepOutcome& outcome) = 0;
  // Moves KV entries in every layer and stream cache, in this order, before the next run(): the accepted nodes of
  // trees.
  virtual void move(std::span<const SlotMove> moves) = 0;
};

}  // namespace draftproof
