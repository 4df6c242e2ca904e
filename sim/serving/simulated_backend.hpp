// The engine's second backend: no models and no tokens. What a step accepts comes from the acceptance model, how long
// it takes from the cost model, and the clock is its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/scheduler/speculation_policy.hpp"
#include "engine/scheduler/step_cost.hpp"
#include "engine/scheduler/step_plan.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/cost/drafting_ahead.hpp"

namespace draftproof {

// How the engine drafts, as far as the scheduler does not know.
struct SimulatedDrafting {
  bool one_pass = false;        // all drafts of a step come of one pass (Medusa, block-parallel, lookup)
  std::int32_t tree_depth = 0;  // levels of a tree that has nodes enough; 0: drafts are chains
  double swap_block_ns = 0.0;   // to copy a KV block to or from the swap space
  bool confidences = true;      // the drafter may say how likely its drafts are
  bool discards_kv = false;     // the drafter reads the prefix again in every step
  bool looked_up = false;       // on the CPU, in no time
  DraftingAhead ahead = {};     // of chains
};

class SimulatedBackend final : public Backend {
 public:
  // All but `drafting` must outlive the object. policy: under the rule confidence, which drafts are verified;
  // else, and where it is null, all are.
  SimulatedBackend(const StepCost& cost, const AcceptanceModel& acceptance, SimulatedDrafting drafting,
                   const SpeculationPolicy* policy = nullptr)
      : cost_(cost),
        acceptance_(acceptance),
        drafting_(drafting),
        confident_policy_(is_confident(policy) ? policy : nullptr) {}

  // Before the first plan that a request is in. number: its own in the workload, by which its acceptances are drawn.
  void add(RequestHandle handle, std::uint64_t number, std::int32_t prompt_len);
  // The clock goes on while nothing is to be done. Precondition: not backwards.
  void advance_to(std::int64_t now_ns) { now_ns_ = now_ns; }
  std::int64_t now_ns() const { return now_ns_; }

  void run(const StepPlan& plan, StepOutcome& outcome) override;
  void move(std::span<const SlotMove>) override {}  // there is no KV

  // Load of the last step.
  const PassLoad& pass() const { return pass_; }
  const DraftLoad& draft() const { return draft_; }  // without what is drafted ahead
  // Of the drafts that were asked for so far, under drafting ahead: those that were ready.
  std::int64_t asked_drafts() const { return asked_drafts_; }
  std::int64_t ready_drafts() const { return ready_drafts_; }
  std::int64_t held_slots() const { return held_slots_; }                    // by the requests of the step
  std::int64_t committed_kv_tokens() const { return committed_kv_tokens_; }  // of them, without drafts

  std::uint64_t number(RequestHandle handle) const { return requests_[static_cast<std::size_t>(handle)].number; }

 private:
  struct Request {
    AcceptanceState acceptance;
    std::uint64_t number = 0;
    std::int32_t prompt_len = 0;
    std::int32_t output_len = 0;
    bool ready = false;  // its next draft was drafted ahead
  };

  static bool is_confident(const SpeculationPolicy* policy) {
    return policy != nullptr && policy->choice().rule == SpeculationRule::confidence;
  }
  std::int32_t depth_of(const PlannedRequest& planned) const;
  // Sets what would be accepted of all drafts of the request with this index in the plan.
  void draft(std::size_t index, const PlannedRequest& planned, SequenceOutcome& outcome);
  void verify(const PlannedRequest& planned, SequenceOutcome& outcome);
  bool is_ready(const Request& request, std::int32_t drafts, std::int32_t accepted);

  const StepCost& cost_;
  const AcceptanceModel& acceptance_;
  SimulatedDrafting drafting_;
  const SpeculationPolicy* confident_policy_;  // null: all drafts are verified
  std::vector<Request> requests_;              // by handle
  std::int64_t now_ns_ = 0;
  PassLoad pass_;
  DraftLoad draft_;
  DraftLoad ahead_;
  bool any_ready_ = false;                         // behind this step
  std::vector<std::vector<std::uint64_t>> ready_;  // thresholds of words, by drafts and accepted ones
  std::int64_t asked_drafts_ = 0, ready_drafts_ = 0;
  std::int64_t held_slots_ = 0;
  std::int64_t committed_kv_tokens_ = 0;
  std::vector<std::vector<float>> confidences_;  // by index in the plan
  std::vector<ConfidentDraft> confident_;        // of those that draft in this step
  std::vector<SequenceOutcome*> confident_of_;
};

}  // namespace draftproof
