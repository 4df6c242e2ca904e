#include "sim/serving/comparison.hpp"

#include "reference/numerics/boost_math.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/json_values.hpp"
#include "base/parallel.hpp"
#include "reference/random/philox.hpp"
#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/serving/static_batch.hpp"

namespace draftproof {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct Run {
  Figures figures{};
  AcceptanceCounts acceptance;
  std::int64_t requests = 0;
  std::int64_t sequence_steps = 0;
  std::int64_t events = 0;
  std::int64_t asked_drafts = 0, ready_drafts = 0;
  double wall_s = 0.0;
  std::array<double, 4> tails_ms{};

  double& operator[](Figure figure) { return figures[static_cast<std::size_t>(figure)]; }
};

double share(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}

void set_latency(Run& run, Figure p50, const LatencySummary& latency) {
  const auto first = static_cast<std::size_t>(p50);
  run.figures[first] = static_cast<double>(latency.p50_ns) * 1e-6;
  run.figures[first + 1] = static_cast<double>(latency.p90_ns) * 1e-6;
  run.figures[first + 2] = static_cast<double>(latency.p99_ns) * 1e-6;
}

void set_acceptance(Run& run, const AcceptanceCounts& acceptance) {
  run.acceptance = acceptance;
  run[Figure::wasted_draft_tokens] = static_cast<double>(acceptance.draft_tokens - acceptance.accepted_tokens);
  run[Figure::acceptance_length] =
      1.0 + share(static_cast<double>(acceptance.accepted_tokens), static_cast<double>(acceptance.drafts));
  run[Figure::tokens_per_step] =
      share(static_cast<double>(acceptance.received_tokens), static_cast<double>(acceptance.steps));
}

Run run_serving(const Scenario& scenario, const ScenarioPolicy& policy, const Workload& workload,
                const AcceptanceModel& acceptance, ServingObserver* observer) {
  ServingOptions options{scenario.scheduler, policy.speculation, policy.drafting, scenario.warmup_requests,
                         policy.fleet};
  const ServingResult result = simulate(workload, *policy.cost, acceptance, options, observer);
  const EngineMetrics& metrics = result.metrics;
  Run run;
  set_acceptance(run, metrics.acceptance);
  run[Figure::throughput] = result.throughput();
  run[Figure::goodput] = result.goodput();
  run[Figure::slo_share] =
      static_cast<double>(metrics.ended_within_service_level) / static_cast<double>(workload.options().num_requests);
  set_latency(run, Figure::ttft_p50, result.ttft);
  set_latency(run, Figure::tpot_p50, result.tpot);
  set_latency(run, Figure::itl_p50, result.inter_token);
  run[Figure::queue_mean] = result.queue_mean_ns * 1e-6;
  run[Figure::running_mean] = static_cast<double>(metrics.sequence_steps) / static_cast<double>(metrics.steps);
  run[Figure::kv_use] = metrics.kv_usage_mean();
  run[Figure::kv_waste] = result.kv_waste;
  run[Figure::step_ms] = static_cast<double>(metrics.busy_ns) * 1e-6 / static_cast<double>(metrics.steps);
  run[Figure::draft_share] = static_cast<double>(metrics.draft_ns) / static_cast<double>(metrics.busy_ns);
  run[Figure::preemptions] = static_cast<double>(metrics.preemptions);
  const LatencySummary* const kinds[] = {&result.ttft_guided, &result.tpot_guided, &result.ttft_plain,
                                         &result.tpot_plain};
  for (std::size_t i = 0; i < run.tails_ms.size(); ++i) run.tails_ms[i] = static_cast<double>(kinds[i]->p99_ns) * 1e-6;
  run.requests = workload.options().num_requests;
  run.sequence_steps = metrics.sequence_steps;
  run.asked_drafts = result.asked_drafts;
  run.ready_drafts = result.ready_drafts;
  run.events = result.events;
  return run;
}

Run run_static(const Scenario& scenario, const ScenarioPolicy& policy, const Workload& workload,
               const AcceptanceModel& acceptance) {
  const StaticBatchResult result =
      run_static_batch(workload, *policy.cost, acceptance,
                       {scenario.workload.arrivals.concurrency, policy.speculation, policy.drafting});
  Run run;
  run.figures.fill(kNotMeasured);
  set_acceptance(run, result.acceptance);
  run[Figure::throughput] = result.tokens_per_second();
  run[Figure::running_mean] = static_cast<double>(result.acceptance.steps) / static_cast<double>(result.steps);
  run[Figure::step_ms] = static_cast<double>(result.total_ns()) * 1e-6 / static_cast<double>(result.steps);
  run[Figure::draft_share] = static_cast<double>(result.draft_ns) / static_cast<double>(result.total_ns());
  run.requests = result.requests;
  run.sequence_steps = result.acceptance.steps;
  run.events = result.steps;
  return run;
}

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
            {"drafter", text_or_null(policy.drafter)},
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
  if (policy.drafting.ahead.is_on())
    json["ready_share"] = number(static_cast<double>(report.ready_drafts) / static_cast<double>(report.asked_drafts));
  if (policy.fleet.servers > 1) {
    constexpr const char* kTails[] = {"guided_ttft_ms_p99", "guided_tpot_ms_p99", "plain_ttft_ms_p99",
                                      "plain_tpot_ms_p99"};
    json["servers"] = policy.fleet.servers;
    json["router"] = name_of(policy.fleet.router);
    json["guided_servers"] = policy.fleet.guided_servers;
    for (std::size_t i = 0; i < report.tails_ms.size(); ++i) json[kTails[i]] = number(report.tails_ms[i].mean);
  }
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

const char* name_of(Figure figure) {
  static constexpr std::array<const char*, kFigures> kNames{
      "throughput",      "goodput",     "slo_share",   "ttft_ms_p50", "ttft_ms_p90",         "ttft_ms_p99",
      "tpot_ms_p50",     "tpot_ms_p90", "tpot_ms_p99", "itl_ms_p50",  "itl_ms_p90",          "itl_ms_p99",
      "queue_ms",        "running",     "kv_use",      "kv_waste",    "wasted_draft_tokens", "acceptance_length",
      "tokens_per_step", "step_ms",     "draft_share", "preemptions"};
  return kNames[static_cast<std::size_t>(figure)];
}

Estimate estimate_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Estimate estimate;
  for (const double value : values) estimate.mean += value / n;
  if (values.size() < 2 || std::isnan(estimate.mean)) return estimate;
  double squares = 0.0;
  for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  const double half =
      boost::math::quantile(boost::math::students_t(n - 1.0), 0.975) * std::sqrt(squares / (n - 1.0) / n);
  estimate.low = estimate.mean - half;
  estimate.high = estimate.mean + half;
  return estimate;
}

std::vector<PolicyReport> compare(const Scenario& scenario, int threads,
                                  const std::function<ServingObserver*(std::size_t policy)>& observer_of,
                                  const std::function<void()>& after_run) {
  const std::size_t policies = scenario.policies.size();
  const auto replications = static_cast<std::size_t>(scenario.replications);
  std::vector<Run> runs(policies * replications);
  parallel_for(static_cast<std::int64_t>(runs.size()), threads, [&](std::int64_t item, int) {
    const auto replication = static_cast<std::size_t>(item) / policies;
    const std::size_t at = static_cast<std::size_t>(item) % policies;
    const ScenarioPolicy& policy = scenario.policies[at];
    const std::uint64_t seed = derive_seed(scenario.seed, replication);
    // Acceptances take the seeds of requests; the workload's is none of them.
    const Workload workload(scenario.workload, derive_seed(seed, ~std::uint64_t{0}));
    const auto acceptance = make_acceptance(policy.acceptance, seed, policy.acceptance_where);
    const auto begin = std::chrono::steady_clock::now();
    Run& run = runs[at * replications + replication];
    run = scenario.static_batch ? run_static(scenario, policy, workload, *acceptance)
                                : run_serving(scenario, policy, workload, *acceptance,
                                              observer_of && replication == 0 ? observer_of(at) : nullptr);
    run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (after_run) after_run();
  });

  std::vector<PolicyReport> reports;
  const auto values_of = [&](auto value) {
    std::vector<double> values;
    for (std::size_t r = 0; r < replications; ++r) values.push_back(value(r));
    return values;
  };
  for (std::size_t at = 0; at < policies; ++at) {
    PolicyReport& report = reports.emplace_back();
    report.name = scenario.policies[at].name;
    const auto run = [&](std::size_t policy, std::size_t r) -> const Run& { return runs[policy * replications + r]; };
    const auto ratio = [&](Figure figure, bool inverse) {
      return estimate_of(values_of([&](std::size_t r) {
        const double mine = figure_of(run(at, r).figures, figure);
        const double first = figure_of(run(0, r).figures, figure);
        return inverse ? first / mine : mine / first;
      }));
    };
    for (std::size_t f = 0; f < kFigures; ++f)
      report.figures[f] = estimate_of(values_of([&](std::size_t r) { return run(at, r).figures[f]; }));
    for (std::size_t i = 0; i < report.tails_ms.size(); ++i)
      report.tails_ms[i] = estimate_of(values_of([&](std::size_t r) { return run(at, r).tails_ms[i]; }));
    report.speedup = ratio(Figure::throughput, false);
    report.latency_ratio = ratio(Figure::tpot_p50, true);
    for (std::size_t r = 0; r < replications; ++r) {
      report.acceptance += run(at, r).acceptance;
      report.requests += run(at, r).requests;
      report.sequence_steps += run(at, r).sequence_steps;
      report.asked_drafts += run(at, r).asked_drafts;
      report.ready_drafts += run(at, r).ready_drafts;
      report.events += run(at, r).events;
      report.wall_s += run(at, r).wall_s;
    }
  }
  return reports;
}

// The recorded requests that were read.
Json trace_json(const WorkloadOptions& workload) {
  if (workload.recorded == nullptr) return nullptr;
  const ArrivalTrace& trace = *workload.recorded;
  return {{"requests", trace.requests.size()},
          {"time_unit", trace.unit},
          {"left_out", trace.left_out},
          {"later_turns", trace.later_turns},
          {"seconds", trace.seconds()}};
}

nlohmann::ordered_json sim_json(const std::string& path, const Scenario& scenario,
                                std::span<const PolicyReport> reports, std::span<const LoadPoint> loads) {
  const Json load = json_list(loads, [&](const LoadPoint& point) -> Json {
    return {{"load", point.load}, {"policies", policies_json(scenario, point.policies)}};
  });
  return {{"scenario", path},
          {"server", scenario.server},
          {"mode", scenario.static_batch ? "static" : "serving"},
          {"seed", scenario.seed},
          {"replications", scenario.replications},
          {"requests", scenario.workload.num_requests},
          {"trace", trace_json(scenario.workload)},
          {"kv_blocks", scenario.static_batch ? Json(nullptr) : Json(scenario.scheduler.num_blocks)},
          {"policies", policies_json(scenario, reports)},
          {"load", load}};
}

}  // namespace draftproof
