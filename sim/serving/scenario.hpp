// A scenario: a server, a workload and the policies to be compared on it, as a TOML file says them (docs/simulator.md).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/simulation.hpp"
#include "sim/toml.hpp"

namespace draftproof {

struct ScenarioPolicy {
  std::string name;  // letters, digits, '_', '-' and '.': it is part of file names
  SpeculationChoice speculation;
  SimulatedDrafting drafting;
  std::string drafter;     // empty: of a linear server, which has one
  std::string acceptance;  // acceptance_choice.hpp
  std::string acceptance_where;
  std::shared_ptr<const StepCost> cost;
  FleetOptions fleet = {};
};

struct Scenario {
  std::string server;  // in words
  WorkloadOptions workload;
  SchedulerOptions scheduler;
  std::int64_t warmup_requests = 0;
  bool static_batch = false;  // run_static_batch() with the batch of the closed workload; else simulate()
  std::uint64_t seed = 1;
  std::int32_t replications = 1;
  std::vector<ScenarioPolicy> policies;  // at least one; the others are compared with the first
};

// Errors (input) at FILE:LINE and the name of the value: an unknown key, a value outside its range, an unknown preset,
// a model that does not fit into the memory, a policy without its drafter, two policies of one name.
Scenario read_scenario(const TomlValue& file);

// Question of `draftproof sim`: a scenario's file with some of its values changed, and the loads of a curve.

struct ScenarioRequest {
  std::string file;
  std::vector<std::string> changes;  // KEY=VALUE, the key dotted: "workload.arrivals.rate=12", "server.gpu=A100"
  std::optional<std::uint64_t> seed;
  std::optional<int> replications;

  bool operator==(const ScenarioRequest&) const = default;
};

// Errors (input) at FILE:LINE, or at the change: it is no KEY=VALUE, or what its key does not take.
Scenario scenario_of(const ScenarioRequest& request);
// The same of a file that is read.
Scenario scenario_of(const ScenarioRequest& request, TomlValue file);

// The scenario at a load: requests per second on average, or with closed arrivals requests at a time. Common random
// numbers between loads, too. Errors (usage) at `where`: the load is not positive, or no whole number
// with closed arrivals.
Scenario with_load(Scenario scenario, double load, const std::string& where);

}  // namespace draftproof
