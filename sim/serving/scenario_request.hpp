// Question of `draftproof sim`: a scenario's file with some of its values changed, and the loads of a curve.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/comparison.hpp"

namespace draftproof {

struct ScenarioRequest {
  std::string file;
  std::vector<std::string> changes;  // KEY=VALUE, the key dotted: "workload.arrivals.rate=12", "server.gpu=A100"
  std::optional<std::uint64_t> seed;
  std::optional<int> replications;

  bool operator==(const ScenarioRequest&) const = default;
};

// Errors (input) at FILE:LINE, or at the change: it is no KEY=VALUE, or what its key does not take.
Scenario scenario_of(const ScenarioRequest& request);

// The policies at one load: requests per second on average, or with closed arrivals requests at a time.
struct LoadPoint {
  double load = 0.0;
  std::vector<PolicyReport> policies;
};
// Common random numbers between loads, too. Errors (usage) at `where`: the load is not positive, or no whole number
// with closed arrivals.
Scenario with_load(Scenario scenario, double load, const std::string& where);

}  // namespace draftproof
