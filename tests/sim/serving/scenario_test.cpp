#include "sim/serving/scenario.hpp"

#include "sim/serving/comparison.hpp"
#include "sim/serving/grid.hpp"
#include "sim/serving/run_files.hpp"
#include "tests/support/test.hpp"

namespace {

// The places {...} are for what a test changes.
const std::string kScenario = R"(acceptance = "constant:0.75"

[linear]
target_ms = 5.886
row_us = 21.0
kv_token_ns = 39.3
draft_pass_ms = 0.7
engine_ms = 1.2

[workload]
requests = 300
warmup = 20
arrivals = { kind = "poisson", rate = 12.0 }
prompt = { kind = "lognormal", mean = 300, variation = 0.5 }
output = { kind = "lognormal", mean = 150, variation = 0.5, most = 1000 }

[scheduler]
kv_blocks = 2000
token_budget = 2048

[slo]
ttft_ms = 200
tpot_ms = 12.5

[run]
replications = 3
seed = 5

[[policy]]
name = "off"
speculation = "off"

[[policy]]
name = "k3"
speculation = "fixed:3"

[[policy]]
name = "adaptive"
speculation = "goodput:max=6"

[[policy]]
name = "tree"
speculation = "fixed:8"
tree_depth = 3
)";

Scenario scenario_of(const std::string& text) {
  return read_scenario(parse_toml(text, "s.toml"));
}

std::string with(const std::string& from, const std::string& to) {
  const std::size_t at = kScenario.find(from);
  REQUIRE(at != std::string::npos);
  return std::string(kScenario).replace(at, from.size(), to);
}

std::string refusal(const std::string& from, const std::string& to) {
  return error_of(ErrorKind::input, [&] { scenario_of(with(from, to)); });
}

}  // namespace

TEST_CASE("a scenario says server, workload, scheduler and policies") {
  const Scenario scenario = scenario_of(kScenario);
  CHECK(scenario.workload.num_requests == 300);
  CHECK(scenario.warmup_requests == 20);
  CHECK(scenario.workload.arrivals.rate == 12.0);
  CHECK(scenario.workload.prompt.kind == LengthKind::lognormal);
  CHECK(scenario.workload.output.most == 1000);
  CHECK(scenario.scheduler.num_blocks == 2000);
  CHECK(scenario.scheduler.service_level.tpot_ns == 12'500'000);
  CHECK(scenario.seed == 5);
  REQUIRE(scenario.policies.size() == 4);
  CHECK(scenario.policies[1].speculation.num_drafts == 3);
  CHECK(scenario.policies[3].drafting.tree_depth == 3);
  PassLoad load;
  load.rows = 10;
  load.kv_tokens = 1000;
  CHECK(scenario.policies[1].cost->target_ns(load) == Approx(5.886e6 + 210e3 + 39.3e3));
}

TEST_CASE("the scenarios and grids that come with the project can be read") {
  int scenarios = 0, grids = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DRAFTPROOF_SOURCE_DIR "/experiments/scenarios")) {
    INFO(entry.path());
    const TomlValue file = read_toml(entry.path().string());
    if (file.find("grid") != nullptr) {
      CHECK(Grid(entry.path().string()).size() > 1);
      ++grids;
    } else {
      CHECK(!read_scenario(file).policies.empty());
      ++scenarios;
    }
  }
  CHECK(scenarios >= 2);
  CHECK(grids >= 1);
}

TEST_CASE("a scenario that is none is refused by line and key") {
  for (const auto& [from, to, error] :
       {std::tuple("rate = 12.0", "rat = 12.0", "s.toml:13: workload.arrivals: it has no 'rate'"),
        {"warmup = 20", "warmpu = 20", "s.toml:12: workload.warmpu: unknown key 'warmpu'; expected one of"},
        {"\"poisson\"", "\"psn\"",
         "s.toml:13: workload.arrivals.kind: it is 'psn'; expected one of poisson, gamma, on_off, closed, recorded"},
        {"\"fixed:3\"", "\"fixed:x\"", "s.toml:35: policy[1].speculation: "},
        {"constant:0.75", "constant:1.75", "s.toml:1: acceptance: "},
        {"acceptance = \"constant:0.75\"", "", "s.toml:33: policy[1]: it speculates without acceptance"},
        {"name = \"k3\"", "name = \"off\"",
         "s.toml:34: policy[1].name: there are two policies 'off'; expected names that differ"},
        {"name = \"k3\"", "name = \"../k3\"", "s.toml:34: policy[1].name: it is '../k3'"},
        {"seed = 5", "seed = 5\nmode = \"static\"",
         "s.toml:28: run.mode: a static batch has no arrivals; expected workload.arrivals of kind closed"},
        {"output = { kind = \"lognormal\", mean = 150, variation = 0.5, most = 1000 }",
         "output = { kind = \"recorded\" }", "s.toml:15: workload.output.kind: there are no recorded requests"},
        {"\"goodput:max=6\"", "\"tree:nodes=4\"",
         "s.toml:39: policy[2].speculation: it drafts trees; expected tree_depth beside it"},
        {"\"goodput:max=6\"", "\"confidence\"",
         "s.toml:39: policy[2].speculation: it is confidence, and acceptance 'constant:0.75' says nothing of "
         "confidences; expected +confidence behind it"},
        {"\"goodput:max=6\"", "\"confidence\"\nacceptance = \"constant:0.7+confidence\"\ntree_depth = 3",
         "s.toml:41: policy[2].tree_depth: the drafts of speculation policy confidence are chains; expected no "
         "tree_depth"}})
    CHECK_THAT(refusal(from, to), Catch::StartsWith(error));
}

// 80 GB x 0.9 less 8.03e9 parameters of two bytes; a block is 16 tokens x 32 layers x 2 x 8 heads x 128 x 2 bytes.
TEST_CASE("the KV cache of a server of presets is what its weights leave of the memory") {
  const std::size_t begin = kScenario.find("[linear]");
  const std::string rest = kScenario.substr(kScenario.find("[workload]"));
  const auto scenario = [&](const std::string& server) {
    std::string text = "drafter = \"EAGLE-3\"\n" + kScenario.substr(0, begin) + server + rest;
    text.erase(text.find("kv_blocks = 2000\n"), 17);
    return scenario_of(text);
  };
  const Scenario one = scenario("[server]\nmodel = \"Llama-3.1-8B\"\ngpu = \"H100\"\n");
  CHECK(one.server == "Llama-3.1-8B (bf16) on H100 SXM 80GB, vLLM");
  const double bytes = 0.9 * 80e9 - 2.0 * 8.03e9;
  CHECK(one.scheduler.num_blocks == Approx(bytes / (16 * 32 * 2 * 8 * 128 * 2.0)).epsilon(0.01));
  CHECK(one.policies[1].drafter == "EAGLE-3");
  CHECK(one.policies[0].drafter.empty());
  const std::string server = "[server]\nmodel = \"Llama-3.1-70B\"\ngpu = \"H100\"\n";
  CHECK(scenario(server).server.find("Llama-3.1-70B (bf16) on 2 x H100") == 0);
  CHECK_THAT(error_of(ErrorKind::input, [&] { scenario(server + "tp = 1\n"); }),
             Catch::StartsWith("s.toml:4: server: the weights of Llama-3.1-70B leave no memory for a KV cache"));
  CHECK_THAT(error_of(ErrorKind::input, [&] { scenario("[server]\nmodel = \"Lama\"\ngpu = \"H100\"\n"); }),
             Catch::StartsWith("s.toml:5: server.model: "));
  CHECK(error_of(ErrorKind::input, [&] { scenario(""); }) ==
        "s.toml:1: it has neither [server] nor [linear]; expected one of them");
}

TEST_CASE("policies are compared on the same requests, with intervals over replications") {
  const Scenario scenario = scenario_of(kScenario);
  const std::vector<PolicyReport> reports = compare(scenario, 2);
  REQUIRE(reports.size() == 4);
  CHECK(reports[0].speedup.mean == 1.0);
  CHECK(reports[0].figure(Figure::acceptance_length).mean == 1.0);
  CHECK(reports[0].figure(Figure::tokens_per_step).mean == 1.0);
  // At 12 requests a second the server keeps up: speculation shows in latency, not in throughput.
  CHECK(reports[1].speedup.mean == Approx(1.0).epsilon(0.1));
  CHECK(reports[1].latency_ratio.mean > 1.2);
  CHECK(*reports[1].latency_ratio.low < reports[1].latency_ratio.mean);
  CHECK(*reports[1].latency_ratio.high > reports[1].latency_ratio.mean);
  CHECK(reports[1].figure(Figure::goodput).mean >= reports[0].figure(Figure::goodput).mean);
  CHECK(reports[1].figure(Figure::acceptance_length).mean == Approx(1 + 0.75 + 0.5625 + 0.421875).epsilon(0.02));
  CHECK(reports[1].acceptance.accepted.size() == 3);
  CHECK(reports[0].requests == 900);
  for (const PolicyReport& report : reports)
    for (const Figure figure : {Figure::slo_share, Figure::kv_use, Figure::kv_waste, Figure::draft_share}) {
      CHECK(report.figure(figure).mean >= 0.0);
      CHECK(report.figure(figure).mean <= 1.0);
    }
  // Threads change nothing.
  const std::vector<PolicyReport> alone = compare(scenario, 1);
  for (std::size_t i = 0; i < reports.size(); ++i)
    for (std::size_t f = 0; f < kFigures; ++f) {
      CHECK(alone[i].figures[f].mean == reports[i].figures[f].mean);
      CHECK(alone[i].figures[f].low == reports[i].figures[f].low);
    }
}

TEST_CASE("confidences are of drafters that have a head for them, and worth rows where the batch is large") {
  const auto scenario = [](const std::string& drafter) {
    return scenario_of("drafter = \"" + drafter + R"("
acceptance = "published:DSpark+confidence:explained=0.5"
[server]
model = "Llama-3.1-8B"
gpu = "H100"
[workload]
requests = 1024
arrivals = { kind = "closed", concurrency = 256 }
prompt = 100
output = 60
[run]
mode = "static"
[[policy]]
name = "off"
speculation = "off"
[[policy]]
name = "all"
speculation = "fixed:7"
[[policy]]
name = "confident"
speculation = "confidence:threshold=0,budget=256"
)");
  };
  CHECK(error_of(ErrorKind::input, [&] { scenario("EAGLE-3"); }) ==
        "s.toml:21: policy[2].speculation: it is confidence, and drafter EAGLE-3 gives no confidences; expected a "
        "drafter with a confidence head (DSpark), or another policy");
  const std::vector<PolicyReport> reports = compare(scenario("DSpark"), 1);
  CHECK(reports[2].speedup.mean > reports[1].speedup.mean);
  CHECK(reports[2].figure(Figure::tokens_per_step).mean < reports[1].figure(Figure::tokens_per_step).mean);
  // The rows went to drafts that were worth them: of all seven 2.49 are accepted.
  const AcceptanceCounts& kept = reports[2].acceptance;
  CHECK(static_cast<double>(kept.accepted_tokens) / static_cast<double>(kept.draft_tokens) > 0.7);
}

// Student's t with 2 degrees of freedom: 4.302653; values 1, 2, 6 have mean 3 and standard deviation sqrt(7).
TEST_CASE("the interval of an estimate is Student's") {
  const Estimate estimate = estimate_of({1.0, 2.0, 6.0});
  CHECK(estimate.mean == Approx(3.0));
  CHECK(*estimate.high - estimate.mean == Approx(4.302653 * std::sqrt(7.0 / 3.0)));
  CHECK(*estimate.low == Approx(6.0 - *estimate.high));
  CHECK(!estimate_of({5.0}).low);
}

TEST_CASE("a static scenario compares batches without latencies") {
  const Scenario scenario =
      scenario_of(with("kind = \"poisson\", rate = 12.0", "kind = \"closed\", concurrency = 8") + "");
  Scenario fixed = scenario;
  fixed.static_batch = true;
  const std::vector<PolicyReport> reports = compare(fixed, 1);
  CHECK(reports[1].speedup.mean > 1.2);
  CHECK(std::isnan(reports[1].figure(Figure::ttft_p50).mean));
  CHECK(reports[1].figure(Figure::running_mean).mean > 7.0);
}

TEST_CASE("of several servers a request's row names the one whose process in the trace emitted its tokens") {
  Scenario scenario = scenario_of("servers = 3\n" + kScenario);
  scenario.policies.resize(1);
  std::ostringstream requests, steps;
  {
    RunFiles files(requests, steps, "off", 3);
    compare(scenario, 1, [&](std::size_t) { return &files; });
  }
  std::map<int, std::int64_t> outputs, emitted;
  std::istringstream lines(requests.str());
  std::string line;
  std::getline(lines, line);
  CHECK(line.ends_with(",preemptions,server"));
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) cells.push_back(field);
    REQUIRE(cells.size() == 13);
    outputs[std::stoi(cells[12])] += std::stoll(cells[3]);
  }
  CHECK(outputs.size() == 3);
  std::map<int, double> end_us;
  const auto trace = nlohmann::json::parse(steps.str());
  CHECK(trace.at("traceEvents")[2].at("args").at("name") == "off, server 2");
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") != "step") continue;
    const int server = event.at("pid").get<int>() - 1;
    CHECK(event.at("ts").get<double>() >= end_us[server] - 1e-3);
    end_us[server] = event.at("ts").get<double>() + event.at("dur").get<double>();
    emitted[server] += event.at("args").at("emitted").get<std::int64_t>();
  }
  CHECK(emitted == outputs);
}

TEST_CASE("a policy that drafts ahead is compared with one that does not, and says how many drafts were ready") {
  const std::string k3 = "name = \"k3\"\nspeculation = \"fixed:3\"";
  const auto scenario = [&](const std::string& value) { return with(k3, k3 + "\nahead = \"" + value + "\""); };
  Scenario both = scenario_of(scenario("outcomes=24,exponent=1,rate=0.75"));
  both.policies.resize(2);
  both.policies.push_back(scenario_of(kScenario).policies[1]);
  const std::vector<PolicyReport> reports = compare(both, 1);
  // F = 24 P^(1/2) / sum P^(1/2): 1 - (sum P^(1/2))^2 / 24 at a = 3/4, K = 3; a request's first drafts are not ready.
  CHECK(static_cast<double>(reports[1].ready_drafts) / static_cast<double>(reports[1].asked_drafts) ==
        Approx(0.84).margin(0.025));
  CHECK(reports[1].speedup.mean > reports[2].speedup.mean);
  CHECK(reports[2].asked_drafts == 0);
  const auto refused = [&](const std::string& value) {
    return error_of(ErrorKind::input, [&] { scenario_of(scenario(value)); });
  };
  for (const char* const value : {"outcomes=24", "outcomes=24,hit=0.9,rate=0.5", "outcomes=24,rate=0.5", "hit=0.5"})
    CHECK(refused(value).starts_with(std::string("s.toml:36: policy[1].ahead: ahead: is '") + value +
                                     "'; expected outcomes=B and either hit=H"));
  CHECK(refused("outcomes=24,hit=0.9\"\ndraft_kv = \"discard") ==
        "s.toml:36: policy[1].ahead: it stands beside draft_kv; expected one of them");
}

TEST_CASE("a drafter's GPUs and what becomes of its KV show in the figures, and wrong ones are refused by key") {
  const auto scenario = [](const std::string& server, const std::string& policy = "") {
    return scenario_of("drafter = \"Llama-3.2-1B\"\nacceptance = \"constant:0.75\"\n[server]\n" + server + R"(
model = "Llama-3.1-8B"
gpu = "H100"
tp = 2
[workload]
requests = 64
arrivals = { kind = "closed", concurrency = 8 }
prompt = 200
output = 60
[[policy]]
name = "k3"
speculation = "fixed:3"
)" + policy);
  };
  const auto report = [&](const std::string& server, const std::string& policy = "") {
    return compare(scenario(server, policy), 1).front();
  };
  const auto step_ms = [](const PolicyReport& of) { return of.figure(Figure::step_ms).mean; };
  const auto share = [](const PolicyReport& of) { return of.figure(Figure::draft_share).mean; };
  const PolicyReport both = report(""), one = report("draft_tp = 1"), slow = report("draft_gpu = \"L4\"");
  const PolicyReport four = report("draft_gpu = \"L4\"\ndraft_tp = 4"), again = report("", "draft_kv = \"discard\"");
  CHECK(step_ms(report("draft_tp = 2", "draft_kv = \"keep\"")) == step_ms(both));
  for (const auto& [faster, slower] : {std::pair(&both, &one), {&one, &four}, {&four, &slow}, {&both, &again}}) {
    CHECK(step_ms(*faster) < step_ms(*slower));
    CHECK(share(*faster) < share(*slower));
    CHECK(faster->figure(Figure::acceptance_length).mean == slower->figure(Figure::acceptance_length).mean);
  }
  // What is not drafting takes as long wherever drafts are made.
  CHECK(step_ms(slow) * (1.0 - share(slow)) == Approx(step_ms(both) * (1.0 - share(both))));
  const auto refused = [&](const std::string& server, const std::string& policy = "") {
    return error_of(ErrorKind::input, [&] { scenario(server, policy); });
  };
  CHECK(refused("draft_tp = 3") == "s.toml:4: server.draft_tp: it is 3; expected a whole number in [1, 2]");
  CHECK_THAT(refused("draft_gpu = \"L44\""), Catch::StartsWith("s.toml:4: server.draft_gpu: GPU 'L44': unknown; "));
  CHECK(refused("", "draft_kv = \"drop\"") ==
        "s.toml:16: policy[0].draft_kv: it is 'drop'; expected one of keep, discard");
  CHECK(refused("", "draft_kv = \"discard\"\n[run]\nmode = \"static\"") ==
        "s.toml:16: policy[0].draft_kv: a static batch keeps draft KV; expected run.mode serving");
}

TEST_CASE("files of a run hold every request and every step") {
  Scenario scenario = scenario_of(kScenario);
  scenario.policies.resize(2);
  scenario.replications = 2;
  std::ostringstream requests, steps;
  std::int64_t traced = 0;
  {
    RunFiles files(requests, steps, "k3");
    compare(scenario, 1, [&](std::size_t policy) { return policy == 1 ? &files : nullptr; });
    traced = files.steps();
  }
  const std::string table = requests.str();
  CHECK(std::count(table.begin(), table.end(), '\n') == 301);
  const auto trace = nlohmann::json::parse(steps.str());
  std::int64_t slices = 0;
  double end_us = 0.0;
  std::int64_t emitted = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") != "step") continue;
    ++slices;
    CHECK(event.at("ts").get<double>() >= end_us - 1e-3);
    end_us = event.at("ts").get<double>() + event.at("dur").get<double>();
    emitted += event.at("args").at("emitted").get<std::int64_t>();
  }
  CHECK(slices == traced);
  // The emitted tokens of the trace are the outputs of the table.
  std::int64_t outputs = 0;
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 4; ++i) std::getline(fields, field, ',');
    outputs += std::stoll(field);
  }
  CHECK(outputs == emitted);
}
