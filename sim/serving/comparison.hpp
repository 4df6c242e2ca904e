// The policies of a scenario on the same requests, with the same luck of drafts as far as the acceptance model allows,
// in several replications.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/serving/scenario.hpp"

namespace draftproof {

// Figures measured of a run. Not a number where the mode has no such thing: latencies of a static batch.
enum class Figure : std::uint8_t {
  throughput,  // output tokens per second
  goodput,     // requests per second that kept to the service level
  slo_share,   // of the requests
  ttft_p50,
  ttft_p90,
  ttft_p99,  // ms
  tpot_p50,
  tpot_p90,
  tpot_p99,
  itl_p50,
  itl_p90,
  itl_p99,
  queue_mean,    // ms from arrival to the first step
  running_mean,  // requests in a step
  kv_use,        // share of the blocks that are held, over the time of all steps
  kv_waste,      // share of the held slots without a committed token
  wasted_draft_tokens,
  acceptance_length,
  tokens_per_step,
  step_ms,      // mean
  draft_share,  // of the time of all steps
  preemptions,
};
inline constexpr std::size_t kFigures = 22;
const char* name_of(Figure figure);
using Figures = std::array<double, kFigures>;
inline double figure_of(const Figures& figures, Figure figure) {
  return figures[static_cast<std::size_t>(figure)];
}

// The mean over replications with a 95 % interval (Student's t); no interval of one replication.
struct Estimate {
  double mean = 0.0;
  std::optional<double> low, high;
};
Estimate estimate_of(const std::vector<double>& values);

struct PolicyReport {
  std::string name;
  std::array<Estimate, kFigures> figures;
  Estimate speedup;                  // throughput / that of the first policy in the same replication
  Estimate latency_ratio;            // TPOT p50 of the first policy / this one's; not a number of a static batch
  std::array<Estimate, 4> tails_ms;  // p99 of TTFT and TPOT of guided requests, then of the others
  AcceptanceCounts acceptance;       // of all replications
  std::int64_t requests = 0;         // of all replications, as the following
  std::int64_t sequence_steps = 0;
  std::int64_t events = 0;
  std::int64_t asked_drafts = 0, ready_drafts = 0;
  double wall_s = 0.0;  // on one thread each

  const Estimate& figure(Figure f) const { return figures[static_cast<std::size_t>(f)]; }
};

// observer_of(policy): told of the first replication of a policy, from its thread; null: nobody. after_run: called
// after each replication of each policy, from its thread.
std::vector<PolicyReport> compare(const Scenario& scenario, int threads,
                                  const std::function<ServingObserver*(std::size_t policy)>& observer_of = {},
                                  const std::function<void()>& after_run = {});

// The policies at one load: requests per second on average, or with closed arrivals requests at a time.
struct LoadPoint {
  double load = 0.0;
  std::vector<PolicyReport> policies;
};

// A comparison as the JSON document of `draftproof sim` (docs/json.md), without its envelope.
nlohmann::ordered_json sim_json(const std::string& path, const Scenario& scenario,
                                std::span<const PolicyReport> reports, std::span<const LoadPoint> loads = {});

}  // namespace draftproof
