// Serving a workload, event by event: requests arrive, the scheduler plans a step, the simulated backend says what is
// accepted and how long it takes. Events are ordered by time and then by kind, arrivals before the end of a step, so
// that a run is a function of its inputs alone, and the same inputs give the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduler/scheduler.hpp"
#include "sim/serving/simulated_backend.hpp"
#include "sim/serving/workload.hpp"

namespace draftproof {

// Servers alike behind a router, which knows prompts and what has ended.
enum class Router : std::uint8_t {
  in_turn,
  fewest_requests,  // that have not ended
  fewest_tokens,    // of prompts, companions' too, of such requests
};
const char* name_of(Router router);
struct FleetOptions {
  std::int32_t servers = 1;
  Router router = Router::in_turn;
  std::int32_t guided_servers = 0;  // the first ones, for guided requests, and none of these on the others; 0: no pools
};

struct ServingOptions {
  SchedulerOptions scheduler;
  SpeculationChoice speculation;
  SimulatedDrafting drafting;
  std::int64_t warmup_requests = 0;  // the first ones, whose latencies are not counted
  FleetOptions fleet = {};
};

struct LatencySummary {
  std::int64_t count = 0;
  double mean_ns = 0.0;
  std::int64_t p50_ns = 0;
  std::int64_t p90_ns = 0;
  std::int64_t p99_ns = 0;
};

struct ServingResult {
  EngineMetrics metrics;
  LatencySummary ttft;                                              // arrival to first token
  LatencySummary tpot;                                              // of requests of two tokens or more
  LatencySummary inter_token;                                       // between steps that emitted for a request
  LatencySummary e2e;                                               // arrival to last token
  LatencySummary ttft_guided, tpot_guided, ttft_plain, tpot_plain;  // the same of guided requests, and of the others
  double queue_mean_ns = 0.0;                                       // arrival to first step
  std::int64_t events = 0;                                          // arrivals and steps
  std::int64_t requested_tokens = 0;
  double requests_in_system = 0.0;  // as the scheduler counts them, the mean over the time from 0 to the last end
  std::int64_t asked_drafts = 0, ready_drafts = 0;  // SimulatedBackend, under drafting ahead
  double kv_waste = 0.0;  // share of the slots that a step's requests hold without a committed token, over all steps

  double seconds() const { return static_cast<double>(metrics.last_end_ns - metrics.first_begin_ns) * 1e-9; }
  double throughput() const { return metrics.goodput(); }  // tokens per second
  // Requests per second that kept to the service level.
  double goodput() const { return metrics.requests_per_second_within_service_level(); }
};

// Told of everything, for files. Progress is that after the step.
class ServingObserver {
 public:
  virtual ~ServingObserver() = default;
  // Of several servers: whose steps and ends the next ones are, 0, 1, ...
  virtual bool takes_several_servers() const { return false; }
  virtual void on_server(std::int32_t) {}
  virtual void on_step(const StepPlan& plan, const StepOutcome& outcome, const Scheduler& scheduler,
                       const SimulatedBackend& backend) = 0;
  virtual void on_end(std::uint64_t request, const RequestProgress& progress) = 0;
};

// Runs all requests of the workload to their end. Metrics of several servers are sums over them. Errors: usage, of
// options, and of an observer that does not take several servers; input, naming the request that does not
// fit into context, cache or token budget, or times beyond kSimulatedNsMax; internal, where something was not
// conserved.
ServingResult simulate(const Workload& workload, const StepCost& cost, const AcceptanceModel& acceptance,
                       const ServingOptions& options, ServingObserver* observer = nullptr);

// Counts of what went in and what came out.
struct ConservationCounts {
  std::int64_t requests_wanted = 0;                                            // of the workload
  std::int64_t requests_arrived = 0, requests_ended = 0, requests_served = 0;  // served: ended with all their tokens
  std::int64_t tokens_requested = 0, tokens_received = 0, tokens_ended = 0;
  std::int64_t blocks_held = 0;  // at the end
};
// The first that does not balance, in words; nothing where all do.
std::optional<std::string> violated_conservation(const ConservationCounts& counts);

}  // namespace draftproof
