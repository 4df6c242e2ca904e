#include "cli/sim/report.hpp"

#include <cmath>
#include <cstdio>

#include "reference/printable.hpp"

namespace draftproof {
namespace {

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

std::string text(const char* format, double value) {
  if (!std::isfinite(value)) return "-";
  char out[64];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

}  // namespace

Json estimate_json(const Estimate& estimate) {
  return {{"mean", number(estimate.mean)}, {"interval", interval(estimate)}};
}

Json sim_json(const std::string& path, const Scenario& scenario, std::span<const PolicyReport> reports) {
  Json policies = Json::array();
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const PolicyReport& report = reports[i];
    const ScenarioPolicy& policy = scenario.policies[i];
    Json json{
        {"name", report.name},
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
    for (const Figure figure : {Figure::queue_mean, Figure::running_mean, Figure::kv_use, Figure::kv_waste,
                                Figure::wasted_draft_tokens, Figure::acceptance_length, Figure::tokens_per_step,
                                Figure::step_ms, Figure::draft_share, Figure::preemptions})
      json[name_of(figure)] = number(report.figure(figure).mean);
    json["acceptance_by_position"] = acceptance_json(report.acceptance);
    json["speedup"] = estimate_json(report.speedup);
    json["latency_ratio"] = estimate_json(report.latency_ratio);
    json["requests"] = report.requests;
    json["sequence_steps"] = report.sequence_steps;
    json["events"] = report.events;
    json["wall_s"] = number(report.wall_s);
    policies.push_back(json);
  }
  return {{"scenario", path},
          {"server", scenario.server},
          {"mode", scenario.static_batch ? "static" : "serving"},
          {"seed", scenario.seed},
          {"replications", scenario.replications},
          {"requests", scenario.workload.num_requests},
          {"kv_blocks", scenario.static_batch ? Json(nullptr) : Json(scenario.scheduler.num_blocks)},
          {"policies", policies}};
}

void print_sim_report(std::ostream& out, const Scenario& scenario, std::span<const PolicyReport> reports) {
  out << printable_line(scenario.server) << '\n'
      << scenario.workload.num_requests << " requests, " << scenario.replications << " replication"
      << (scenario.replications == 1 ? "" : "s");
  if (!scenario.static_batch) out << ", " << scenario.scheduler.num_blocks << " KV blocks";
  out << "\n\n";
  struct Column {
    const char* head;
    const char* unit;
    const char* format;
    Figure figure;
  };
  const Column columns[] = {{"tokens", "/s", "%.0f", Figure::throughput},
                            {"goodput", "req/s", "%.2f", Figure::goodput},
                            {"in SLO", "share", "%.3f", Figure::slo_share},
                            {"TTFT ms", "p50", "%.1f", Figure::ttft_p50},
                            {"", "p99", "%.1f", Figure::ttft_p99},
                            {"TPOT ms", "p50", "%.2f", Figure::tpot_p50},
                            {"", "p99", "%.2f", Figure::tpot_p99},
                            {"ITL ms", "p99", "%.2f", Figure::itl_p99},
                            {"KV", "use", "%.3f", Figure::kv_use},
                            {"", "waste", "%.3f", Figure::kv_waste},
                            {"tokens", "/step", "%.2f", Figure::tokens_per_step}};
  constexpr std::size_t kNumber = 9;
  std::size_t name = 8;
  for (const PolicyReport& report : reports) name = std::max(name, report.name.size() + 1);
  const auto row = [&](const std::string& first, auto cell, const std::string& last) {
    out << first << std::string(name - first.size(), ' ');
    for (const Column& column : columns) out << right(cell(column), kNumber);
    out << "  " << last << '\n';
  };
  row(
      "policy", [](const Column& column) { return std::string(column.head); }, "throughput");
  row(
      "", [](const Column& column) { return std::string(column.unit); },
      "/ " + reports[0].name + (reports[0].speedup.low ? " (95 % interval)" : ""));
  for (const PolicyReport& report : reports) {
    std::string ratio = text("%.3f", report.speedup.mean);
    if (report.speedup.low && &report != reports.data())
      ratio += " [" + text("%.3f", *report.speedup.low) + ", " + text("%.3f", *report.speedup.high) + "]";
    row(
        report.name, [&](const Column& column) { return text(column.format, report.figure(column.figure).mean); },
        ratio);
  }
  std::int64_t steps = 0;
  double wall_s = 0.0;
  for (const PolicyReport& report : reports) {
    steps += report.sequence_steps;
    wall_s += report.wall_s;
  }
  out << '\n'
      << steps << " sequence-steps in " << text("%.2f", wall_s) << " s, "
      << text("%.1f", static_cast<double>(steps) / wall_s * 1e-6) << " million a second on a core\n";
}

}  // namespace draftproof
