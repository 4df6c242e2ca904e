// The decoding of a workload in a batch that is always full, as far as it goes: no queue, no prompts to compute, no
// limit on the KV. What speculation papers measure, and what replays of recorded acceptances are run in.
//
// Requests take `batch` places in their order; who ends makes room for the next one in the following step. A request
// begins with the last token of its prompt, which gives its first output token. With prompts of one token and blocks
// enough this is simulate() of a closed workload, step for step.
#pragma once

#include <cstdint>

#include "engine/metrics/acceptance.hpp"
#include "engine/scheduler/speculation_choice.hpp"
#include "sim/serving/simulated_backend.hpp"
#include "sim/serving/workload.hpp"

namespace draftproof {

struct StaticBatchOptions {
  std::int32_t batch = 1;
  SpeculationChoice speculation;
  SimulatedDrafting drafting;
};

struct StaticBatchResult {
  AcceptanceCounts acceptance;  // its steps are steps of sequences
  std::int64_t steps = 0;       // of the batch
  std::int64_t requests = 0;
  std::int64_t draft_ns = 0;
  std::int64_t verify_ns = 0;
  std::int64_t overhead_ns = 0;

  std::int64_t total_ns() const { return draft_ns + verify_ns + overhead_ns; }
  double tokens_per_second() const {
    return static_cast<double>(acceptance.received_tokens) / (static_cast<double>(total_ns()) * 1e-9);
  }
  double tokens_per_step() const {
    return static_cast<double>(acceptance.received_tokens) / static_cast<double>(acceptance.steps);
  }
};

// Arrivals and companions of the workload do not count. Errors (usage): a batch of none, a policy without its
// parameters.
StaticBatchResult run_static_batch(const Workload& workload, const StepCost& cost, const AcceptanceModel& acceptance,
                                   const StaticBatchOptions& options);

}  // namespace draftproof
