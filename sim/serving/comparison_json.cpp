#include "sim/serving/comparison_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json interval(const Estimate& estimate) {
  if (!estimate.low) return nullptr;
  return Json::array({number(*estimate.low), number(*estimate.high)});
}

Json percentiles(const PolicyReport& report, Figure p50) {
  Json json = Json::object();
  const auto first = static_cast<std::size_t>(p50);
  const char* const names[] = {"p50", "p90", "p99"};
  for (std::size_t i = 0; i < 3; ++i) json[names[i]] = number(report.figures[first + i].mean);
  for (std::size_t i = 0; i < 3; ++i) json[std::string(names[i]) + "_interval"] = interval(report.figures[first + i]);
  return json;
}

Json acceptance_json(const AcceptanceCounts& counts) {
  Json conditional = Json::array();
  Json unconditional = Json::array();
  for (std::size_t j = 0; j < counts.accepted.size(); ++j) {
    conditional.push_back(counts.reached[j] == 0
                              ? Json(nullptr)
                              : Json(static_cast<double>(counts.accepted[j]) / static_cast<double>(counts.reached[j])));
    unconditional.push_back(static_cast<double>(counts.accepted[j]) / static_cast<double>(counts.drafts));
  }
  return {{"conditional", conditional}, {"unconditional", unconditional}};
}

Json estimate_json(const Estimate& estimate) {
  return {{"mean", number(estimate.mean)}, {"interval", interval(estimate)}};
}

Json policy_json(const ScenarioPolicy& policy, const PolicyReport& report) {
  Json json{{"name", report.name},
            {"speculation", text_of(policy.speculation)},
            {"tree_depth", policy.drafting.tree_depth > 0 ? Json(policy.drafting.tree_depth) : Json(nullptr)},
            {"drafter", policy.drafter.empty() ? Json(nullptr) : Json(policy.drafter)},
            {"acceptance", policy.speculation.rule == SpeculationRule::off ? Json(nullptr) : Json(policy.acceptance)}};
  for (const Figure figure : {Figure::throughput, Figure::goodput, Figure::slo_share}) {
    json[name_of(figure)] = number(report.figure(figure).mean);
    json[std::string(name_of(figure)) + "_interval"] = interval(report.figure(figure));
  }
  json["ttft_ms"] = percentiles(report, Figure::ttft_p50);
  json["tpot_ms"] = percentiles(report, Figure::tpot_p50);
  json["itl_ms"] = percentiles(report, Figure::itl_p50);
  for (const Figure figure :
       {Figure::queue_mean, Figure::running_mean, Figure::kv_use, Figure::kv_waste, Figure::wasted_draft_tokens,
        Figure::acceptance_length, Figure::tokens_per_step, Figure::step_ms, Figure::draft_share, Figure::preemptions})
    json[name_of(figure)] = number(report.figure(figure).mean);
  json["acceptance_by_position"] = acceptance_json(report.acceptance);
  json["speedup"] = estimate_json(report.speedup);
  json["latency_ratio"] = estimate_json(report.latency_ratio);
  json["requests"] = report.requests;
  json["sequence_steps"] = report.sequence_steps;
  json["events"] = report.events;
  json["wall_s"] = number(report.wall_s);
  return json;
}

Json policies_json(const Scenario& scenario, std::span<const PolicyReport> reports) {
  Json policies = Json::array();
  for (std::size_t i = 0; i < reports.size(); ++i) policies.push_back(policy_json(scenario.policies[i], reports[i]));
  return policies;
}

}  // namespace

nlohmann::ordered_json sim_json(const std::string& path, const Scenario& scenario,
                                std::span<const PolicyReport> reports, std::span<const LoadPoint> loads) {
  Json load = Json::array();
  for (const LoadPoint& point : loads)
    load.push_back({{"load", point.load}, {"policies", policies_json(scenario, point.policies)}});
  return {{"scenario", path},
          {"server", scenario.server},
          {"mode", scenario.static_batch ? "static" : "serving"},
          {"seed", scenario.seed},
          {"replications", scenario.replications},
          {"requests", scenario.workload.num_requests},
          {"kv_blocks", scenario.static_batch ? Json(nullptr) : Json(scenario.scheduler.num_blocks)},
          {"policies", policies_json(scenario, reports)},
          {"load", load}};
}

}  // namespace draftproof
