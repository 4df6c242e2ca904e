// The panel "Serving timeline": a scenario of `draftproof sim`, the steps of its policies, and its policies by load.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/comparison.hpp"
#include "studies/figures/table.hpp"
#include "studies/job.hpp"
#include "studies/serving/timeline_recorder.hpp"

namespace draftproof {

std::string chat_scenario();  // experiments/scenarios/chat.toml

struct ServingTimelineSettings {
  std::string scenario = chat_scenario();
  double load = 0.0;                 // requests per second, or at a time with closed arrivals; 0: the scenario's
  std::vector<std::string> changes;  // KEY=VALUE, before load and requests
  std::int64_t requests = 400;       // 0: the scenario's
  std::optional<std::uint64_t> seed;
  std::vector<double> loads{4, 8, 16, 32, 64};  // of the curves
  // Policies that are drawn, by name; empty: the first two.
  std::string upper, lower;

  bool operator==(const ServingTimelineSettings&) const = default;
};

struct ServingTimelineSnapshot {
  ServingTimelineSettings settings;
  Scenario scenario;
  bool closed = false;  // arrivals: the load is requests at a time
  std::vector<PolicyReport> reports;
  std::vector<PolicyTimeline> timelines;  // of each policy; empty in static mode, which has no requests in time
  std::vector<LoadPoint> loads;           // so far

  // The timelines that are drawn; null where there is none.
  const PolicyTimeline* upper() const;
  const PolicyTimeline* lower() const;
};

// The scenarios that come with the project: their files.
std::vector<std::string> shipped_scenarios();
// Request of a scenario, without the loads.
ScenarioRequest request_of(const ServingTimelineSettings& settings);

using PublishServing = std::function<void(ServingTimelineSnapshot)>;
void compute(const ServingTimelineSettings& settings, Job& job, const PublishServing& publish);
nlohmann::ordered_json to_json(const ServingTimelineSnapshot& snapshot);
// The steps of both timelines that are drawn.
Table to_table(const ServingTimelineSnapshot& snapshot);
// TTFT, TPOT and goodput by load.
std::string to_figure(const ServingTimelineSnapshot& snapshot);
std::vector<std::string> command_arguments(const ServingTimelineSettings& settings);

// Settings of a scenario's or grid's file, and of a document of `draftproof sim`. Errors (input) at `path`.
ServingTimelineSettings settings_of_scenario(const std::string& path);
ServingTimelineSettings settings_of_simulation(const nlohmann::ordered_json& document, const std::string& path);

}  // namespace draftproof
