#include "sim/serving/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/serving/arrivals_file.hpp"
#include "sim/serving/scenario_server.hpp"

namespace draftproof {
namespace {

constexpr std::int32_t kInt32Max = std::numeric_limits<std::int32_t>::max();

// An error of another reader, as one at a value of the file.
template <class Body>
auto at_value(const TomlValue& value, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    throw input_error(value.where(), error.what());
  }
}

std::int32_t int32_or(const TomlValue& table, std::string_view key, std::int64_t otherwise, std::int64_t least,
                      std::int64_t most = kInt32Max) {
  return static_cast<std::int32_t>(table.integer_or(key, otherwise, least, most));
}

const std::string& one_of(const TomlValue& value, std::initializer_list<const char*> words) {
  for (const char* const word : words)
    if (value.text() == word) return value.text();
  throw input_error(value.where(), "it is " + in_quotes(value.text()) + "; expected one of " + joined(words, ", "));
}

// A path in a file is relative to the file's folder.
std::string path_beside(const TomlValue& value) {
  const std::filesystem::path path = value.text();
  return (path.is_absolute() ? path : std::filesystem::path(value.file()).parent_path() / path).string();
}

ArrivalOptions read_arrivals(const TomlValue& table, WorkloadOptions& workload) {
  ArrivalOptions arrivals;
  const std::string& kind = one_of(table.at("kind"), {"poisson", "gamma", "on_off", "closed", "recorded"});
  constexpr double kLeast = 1e-9;
  constexpr double kMost = 1e9;
  if (kind == "closed") {
    table.allow_only({"kind", "concurrency"});
    arrivals.kind = ArrivalKind::closed;
    arrivals.concurrency = static_cast<std::int32_t>(table.at("concurrency").integer(1, 1'000'000));
    return arrivals;
  }
  if (kind == "recorded") {
    table.allow_only({"kind", "file", "rate", "time_unit"});
    arrivals.kind = ArrivalKind::recorded;
    arrivals.rate = table.find("rate") == nullptr ? 0.0 : table.at("rate").number(kLeast, kMost);
    const TomlValue& file = table.at("file");
    const TomlValue* const unit = table.find("time_unit");
    if (unit != nullptr) one_of(*unit, {"s", "ms", "us", "ns"});
    workload.recorded = at_value(file, [&] {
      return std::make_shared<const ArrivalTrace>(
          read_arrivals_file(path_beside(file), unit == nullptr ? "" : unit->text()));
    });
    return arrivals;
  }
  arrivals.rate = table.at("rate").number(kLeast, kMost);
  if (kind == "poisson") {
    table.allow_only({"kind", "rate"});
    arrivals.kind = ArrivalKind::poisson;
  } else if (kind == "gamma") {
    table.allow_only({"kind", "rate", "variation"});
    arrivals.kind = ArrivalKind::gamma;
    arrivals.variation = table.at("variation").number(0.01, 100.0);
  } else {
    table.allow_only({"kind", "rate", "on_s", "off_s"});
    arrivals.kind = ArrivalKind::on_off;
    arrivals.on_s = table.at("on_s").number(kLeast, kMost);
    arrivals.off_s = table.at("off_s").number(kLeast, kMost);
  }
  return arrivals;
}

// A whole number stands for a constant length.
LengthOptions read_lengths(const TomlValue& value, bool recorded) {
  LengthOptions lengths;
  if (value.kind() == TomlValue::Kind::integer) {
    lengths.mean = static_cast<double>(value.integer(1, kInt32Max));
    return lengths;
  }
  const TomlValue& kind = value.at("kind");
  const std::string& name = one_of(kind, {"lognormal", "exponential", "recorded"});
  if (name == "recorded") {
    value.allow_only({"kind", "least", "most"});
    if (!recorded)
      throw input_error(kind.where(), "there are no recorded requests; expected workload.arrivals of kind recorded");
    lengths.kind = LengthKind::recorded;
  } else if (name == "exponential") {
    value.allow_only({"kind", "mean", "least", "most"});
    lengths.kind = LengthKind::exponential;
    lengths.mean = value.at("mean").number(0.01, 1e9);
  } else {
    value.allow_only({"kind", "mean", "variation", "least", "most"});
    lengths.kind = LengthKind::lognormal;
    lengths.mean = value.at("mean").number(0.01, 1e9);
    lengths.variation = value.at("variation").number(0.001, 100.0);
  }
  lengths.least = int32_or(value, "least", 1, 1);
  lengths.most = int32_or(value, "most", kInt32Max, lengths.least);
  return lengths;
}

WorkloadOptions read_workload(const TomlValue& table, std::int64_t& warmup_requests) {
  table.allow_only({"requests", "warmup", "arrivals", "prompt", "output", "companion_prompt", "guided_share"});
  WorkloadOptions workload;
  workload.num_requests = table.at("requests").integer(1, std::int64_t{1} << 32);
  warmup_requests = table.integer_or("warmup", 0, 0, workload.num_requests - 1);
  workload.arrivals = read_arrivals(table.at("arrivals"), workload);
  const bool recorded = workload.recorded != nullptr;
  workload.prompt = read_lengths(table.at("prompt"), recorded);
  workload.output = read_lengths(table.at("output"), recorded);
  if (const TomlValue* companion = table.find("companion_prompt"))
    workload.companion_prompt_len = static_cast<std::int32_t>(companion->integer(1, kInt32Max));
  if (const TomlValue* share = table.find("guided_share")) {
    workload.guided_share = share->number(0.0, 1.0);
    if (!workload.companion_prompt_len)
      throw input_error(share->where(), "it stands without companion_prompt; expected that beside it");
  }
  at_value(table.at("arrivals"), [&] { Workload(workload, 0); });
  return workload;
}

void read_scheduler(const TomlValue& table, SchedulerOptions& options, double& swap_block_us) {
  table.allow_only({"token_budget", "running_max", "context_max", "kv_blocks", "chunked_prefill", "prefill_chunk_max",
                    "drafts_with_prefill", "policy", "prefill_steps_max", "preemption", "swap_blocks", "swap_block_us",
                    "admission_reserve_blocks"});
  options.token_budget = int32_or(table, "token_budget", options.token_budget, 1);
  options.running_max = int32_or(table, "running_max", options.running_max, 1);
  options.context_len_max = int32_or(table, "context_max", options.context_len_max, 2);
  options.num_blocks = int32_or(table, "kv_blocks", options.num_blocks, 1, 1 << 27);
  options.chunked_prefill = table.flag_or("chunked_prefill", options.chunked_prefill);
  options.prefill_chunk_max = int32_or(table, "prefill_chunk_max", options.prefill_chunk_max, 1);
  options.drafts_with_prefill = table.flag_or("drafts_with_prefill", options.drafts_with_prefill);
  if (const TomlValue* policy = table.find("policy"))
    options.policy =
        one_of(*policy, {"one_rule", "two_phase"}) == "one_rule" ? StepPolicy::one_rule : StepPolicy::two_phase;
  options.prefill_steps_max = int32_or(table, "prefill_steps_max", options.prefill_steps_max, 1);
  if (const TomlValue* preemption = table.find("preemption"))
    options.preemption =
        one_of(*preemption, {"recompute", "swap"}) == "swap" ? Preemption::swap : Preemption::recompute;
  options.num_swap_blocks = int32_or(table, "swap_blocks", 0, 0, 1 << 27);
  swap_block_us = table.number_or("swap_block_us", 0.0, 0.0, 1e9);
  options.admission_reserve_blocks = int32_or(table, "admission_reserve_blocks", 0, 0);
}

// The value of a policy's own table, or that of the whole file.
const TomlValue* policy_or_file(const TomlValue& policy, const TomlValue& file, std::string_view key) {
  const TomlValue* found = policy.find(key);
  return found != nullptr ? found : file.find(key);
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 64 && text.front() != '.' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

FleetOptions read_fleet(const TomlValue& policy, const TomlValue& file) {
  FleetOptions fleet;
  fleet.servers = int32_or(file, "servers", 1, 1, 1024);
  const TomlValue* router = policy_or_file(policy, file, "router");
  const TomlValue* guided = policy_or_file(policy, file, "guided_servers");
  for (const TomlValue* const value : {router, guided})
    if (value != nullptr && fleet.servers == 1)
      throw input_error(value->where(), "there is one server; expected servers above 1 at the top of the file");
  if (router != nullptr) {
    const std::string name = one_of(*router, {"in_turn", "fewest_requests", "fewest_tokens"});
    fleet.router = name == "in_turn"           ? Router::in_turn
                   : name == "fewest_requests" ? Router::fewest_requests
                                               : Router::fewest_tokens;
  }
  if (guided != nullptr) fleet.guided_servers = static_cast<std::int32_t>(guided->integer(0, fleet.servers - 1));
  return fleet;
}

DraftingAhead read_ahead(const TomlValue& value, const TomlValue& table, const ScenarioPolicy& policy,
                         const ScenarioServer& server) {
  const auto refuse = [&](const std::string& what) { throw input_error(value.where(), what); };
  if (!server.drafts_elsewhere())
    refuse("it drafts while the target verifies, on the target's GPUs; expected server.draft_gpu, devices of its own");
  if (policy.drafting.looked_up) refuse("drafter " + policy.drafter + " takes no time; expected another, or no ahead");
  for (const SpeculationRule rule : {SpeculationRule::goodput, SpeculationRule::tree, SpeculationRule::confidence})
    if (policy.speculation.rule == rule)
      refuse("it stands beside " + text_of(policy.speculation) + "; expected a policy of chains that weighs no times");
  for (const char* const other : {"tree_depth", "draft_kv"})
    if (table.find(other) != nullptr) refuse(std::string("it stands beside ") + other + "; expected one of them");
  return at_value(value, [&] { return parse_ahead(value.text(), "ahead"); });
}

ScenarioPolicy read_policy(const TomlValue& table, const TomlValue& file, const ScenarioServer& server) {
  table.allow_only(
      {"name", "speculation", "drafter", "acceptance", "tree_depth", "router", "guided_servers", "draft_kv", "ahead"});
  ScenarioPolicy policy;
  policy.fleet = read_fleet(table, file);
  policy.name = table.at("name").text();
  if (!is_name(policy.name))
    throw input_error(table.at("name").where(),
                      "it is " + in_quotes(policy.name) + "; expected at most 64 letters, digits, '_', '-' and '.'");
  const TomlValue& speculation = table.at("speculation");
  policy.speculation = at_value(speculation, [&] { return parse_speculation(speculation.text(), "speculation"); });
  if (policy.speculation.rule == SpeculationRule::likely)
    throw input_error(
        speculation.where(),
        "it is likely, which looks at the tokens of drafts, and the simulator has none; expected off, fixed, "
        "threshold, cumulative, target_efficiency, schedule, goodput, tree or confidence");
  if (policy.speculation.rule == SpeculationRule::automatic)
    throw input_error(speculation.where(),
                      "it is auto, which goes by the times of the machine that it runs on; expected off, fixed, "
                      "threshold, cumulative, target_efficiency, schedule, goodput, tree or confidence");
  policy.acceptance = "constant:0";
  if (policy.speculation.rule == SpeculationRule::off) {
    policy.cost = server.cost_without_drafter();
    return policy;
  }
  const TomlValue* acceptance = policy_or_file(table, file, "acceptance");
  if (acceptance == nullptr)
    throw input_error(table.where(), "it speculates without acceptance; expected one here or at the top of the file");
  policy.acceptance = acceptance->text();
  policy.acceptance_where = acceptance->where();
  const auto model = at_value(*acceptance, [&] { return make_acceptance(policy.acceptance, 0, "acceptance"); });
  const TomlValue* drafter = policy_or_file(table, file, "drafter");
  server.set_drafter(drafter, table.where(), policy);
  if (policy.speculation.rule == SpeculationRule::confidence) {
    if (!policy.drafting.confidences)
      throw input_error(speculation.where(), "it is confidence, and drafter " + policy.drafter +
                                                 " gives no confidences; expected a drafter with a confidence head "
                                                 "(DSpark), or another policy");
    if (!model->gives_confidences())
      throw input_error(speculation.where(), "it is confidence, and acceptance " + in_quotes(policy.acceptance) +
                                                 " says nothing of confidences; expected +confidence behind it");
  }
  if (const TomlValue* kv = table.find("draft_kv"))
    policy.drafting.discards_kv = one_of(*kv, {"keep", "discard"}) == "discard";
  if (const TomlValue* ahead = table.find("ahead")) policy.drafting.ahead = read_ahead(*ahead, table, policy, server);
  const TomlValue* depth = table.find("tree_depth");
  if (depth != nullptr) policy.drafting.tree_depth = static_cast<std::int32_t>(depth->integer(1, kAcceptanceDepthMax));
  if (depth != nullptr && policy.speculation.rule == SpeculationRule::confidence)
    throw input_error(depth->where(), "the drafts of speculation policy confidence are chains; expected no tree_depth");
  if (depth == nullptr && policy.speculation.rule == SpeculationRule::tree)
    throw input_error(speculation.where(), "it drafts trees; expected tree_depth beside it");
  return policy;
}

// As TOML where it is, else a text: fixed:3, H100.
TomlValue value_of(const std::string& text, const std::string& where) {
  try {
    return parse_toml_value(text, where);
  } catch (const Error&) {
    return parse_toml_value(toml_quoted(text), where);
  }
}

}  // namespace

Scenario read_scenario(const TomlValue& file) {
  file.allow_only({"server", "linear", "workload", "scheduler", "slo", "run", "drafter", "acceptance", "policy",
                   "servers", "router", "guided_servers"});
  Scenario scenario;
  scenario.workload = read_workload(file.at("workload"), scenario.warmup_requests);
  const ScenarioServer server(file);
  scenario.server = server.description();
  scenario.scheduler.context_len_max = 32'768;
  scenario.scheduler.token_budget = 8192;
  double swap_block_us = 0.0;
  const TomlValue* scheduler = file.find("scheduler");
  if (scheduler != nullptr) read_scheduler(*scheduler, scenario.scheduler, swap_block_us);
  if (scheduler == nullptr || scheduler->find("kv_blocks") == nullptr)
    scenario.scheduler.num_blocks = server.kv_blocks();
  if (const TomlValue* slo = file.find("slo")) {
    slo->allow_only({"ttft_ms", "tpot_ms"});
    scenario.scheduler.service_level.ttft_ns =
        static_cast<std::int64_t>(slo->number_or("ttft_ms", 0.0, 0.0, 1e9) * 1e6);
    scenario.scheduler.service_level.tpot_ns =
        static_cast<std::int64_t>(slo->number_or("tpot_ms", 0.0, 0.0, 1e9) * 1e6);
  }
  if (const TomlValue* run = file.find("run")) {
    run->allow_only({"seed", "replications", "mode"});
    scenario.seed = static_cast<std::uint64_t>(run->integer_or("seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
    scenario.replications = int32_or(*run, "replications", 1, 1, 10'000);
    if (const TomlValue* mode = run->find("mode")) {
      scenario.static_batch = one_of(*mode, {"serving", "static"}) == "static";
      if (scenario.static_batch && scenario.workload.arrivals.kind != ArrivalKind::closed)
        throw input_error(mode->where(), "a static batch has no arrivals; expected workload.arrivals of kind closed");
    }
  }
  for (const TomlValue& table : file.at("policy").items()) {
    ScenarioPolicy policy = read_policy(table, file, server);
    policy.drafting.swap_block_ns = swap_block_us * 1e3;
    if (scenario.static_batch && policy.drafting.ahead.is_on())
      throw input_error(table.at("ahead").where(), "a static batch does not draft ahead; expected run.mode serving");
    if (scenario.static_batch && policy.drafting.discards_kv)
      throw input_error(table.at("draft_kv").where(), "a static batch keeps draft KV; expected run.mode serving");
    if (scenario.static_batch && policy.fleet.servers > 1)
      throw input_error(file.at("servers").where(), "a static batch is of one server; expected run.mode serving");
    if (policy.fleet.guided_servers > 0 && !scenario.workload.companion_prompt_len)
      throw input_error(table.where(),
                        "it has servers for guided requests, and there are none; expected workload.companion_prompt");
    for (const ScenarioPolicy& other : scenario.policies)
      if (other.name == policy.name)
        throw input_error(table.at("name").where(),
                          "there are two policies '" + policy.name + "'; expected names that differ");
    scenario.policies.push_back(std::move(policy));
  }
  if (scenario.policies.empty())
    throw input_error(file.at("policy").where(), "it is empty; expected at least one policy");
  return scenario;
}

Scenario scenario_of(const ScenarioRequest& request) {
  return scenario_of(request, read_toml(request.file));
}

Scenario scenario_of(const ScenarioRequest& request, TomlValue file) {
  std::set<std::string> changed;
  for (const std::string& change : request.changes) {
    const std::size_t equals = change.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw usage_error("--set", "is " + in_quotes(change) + "; expected KEY=VALUE, as workload.arrivals.rate=12");
    const std::string key = change.substr(0, equals);
    if (!changed.insert(key).second)
      throw usage_error("--set", printable_line(key) + " is given several times; expected once");
    file = file.with(key, value_of(change.substr(equals + 1), "--set " + printable_line(change)));
  }
  Scenario scenario = read_scenario(file);
  if (request.seed) scenario.seed = *request.seed;
  if (request.replications) scenario.replications = *request.replications;
  return scenario;
}

Scenario with_load(Scenario scenario, double load, const std::string& where) {
  constexpr double kMost = 1e6;
  ArrivalOptions& arrivals = scenario.workload.arrivals;
  const bool closed = arrivals.kind == ArrivalKind::closed;
  if (!(load > 0.0 && load <= kMost) || (closed && load != std::floor(load)))
    throw usage_error(where, "is " + nlohmann::json(load).dump() + "; expected " +
                                 (closed ? "a number of requests at a time" : "requests per second, above 0") +
                                 " and up to 1e6");
  if (closed) {
    arrivals.concurrency = static_cast<std::int32_t>(load);
  } else {
    arrivals.rate = load;
  }
  try {
    Workload(scenario.workload, 0);
  } catch (const Error& error) {
    throw usage_error(where + " " + nlohmann::json(load).dump(), error.what());
  }
  return scenario;
}

}  // namespace draftproof
