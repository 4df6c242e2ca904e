#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/run_verb.hpp"
#include "tests/support/sanitizers.hpp"

namespace draftproof {
namespace {

using nlohmann::ordered_json;
using namespace testing;

const std::string kScenario = R"(acceptance = "beta:mean=0.7,spread=0.15"
[linear]
target_ms = 6.0
row_us = 21.0
draft_pass_ms = 0.7
[workload]
requests = 100
arrivals = { kind = "gamma", rate = 10.0, variation = 2.0 }
prompt = 200
output = { kind = "lognormal", mean = 100, variation = 0.7, most = 600 }
[slo]
tpot_ms = 6
[run]
replications = 2
[[policy]]
name = "off"
speculation = "off"
[[policy]]
name = "threshold"
speculation = "threshold:max=6"
)";

ordered_json without_time(ordered_json document) {
  for (auto& policy : document.at("policies")) policy.erase("wall_s");
  document.erase("command");
  return document;
}

}  // namespace

TEST_CASE("sim answers with the figures of every policy, the same in every run") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("s.toml"), kScenario);
  const auto run = [&](const std::string& threads) {
    return json_of({"sim", folder.file("s.toml"), "--threads", threads});
  };
  const ordered_json document = run("1");
  REQUIRE(document.at("policies").size() == 2);
  for (const ordered_json& policy : document.at("policies")) {
    for (const char* const key : {"throughput", "goodput", "kv_use", "wasted_draft_tokens", "events", "wall_s"})
      CHECK(policy.at(key).is_number());
    for (const char* const key : {"ttft_ms", "tpot_ms", "itl_ms"}) {
      const ordered_json& latency = policy.at(key);
      CHECK(latency.at("p50").get<double>() <= latency.at("p90").get<double>());
      CHECK(latency.at("p90").get<double>() <= latency.at("p99").get<double>());
      CHECK(latency.at("p50_interval").size() == 2);
    }
  }
  CHECK(document.at("policies")[1].at("latency_ratio").at("mean").get<double>() > 1.1);
  CHECK(without_time(document) == without_time(run("2")));
}

TEST_CASE(
    "options --seed, --replications, --set and --load reach the run and every load as the scenario's own values do") {
  const TemporaryFolder folder;
  const auto run = [&](std::string scenario, const std::vector<std::string>& more) {
    write_whole_file(folder.file("s.toml"), scenario);
    std::vector<std::string> arguments{"sim", folder.file("s.toml"), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_draftproof(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    ordered_json document = without_time(ordered_json::parse(result.out));
    if (document.contains("load"))
      for (auto& load : document.at("load"))
        for (auto& policy : load.at("policies")) policy.erase("wall_s");
    return document;
  };
  const auto with = [](std::string scenario, const std::string& text, const std::string& other) {
    REQUIRE(scenario.find(text) != std::string::npos);
    return scenario.replace(scenario.find(text), text.size(), other);
  };
  const std::string changed =
      with(with(kScenario, "replications = 2", "replications = 3\nseed = 9"), "requests = 100", "requests = 60");
  const ordered_json expected = run(changed, {"--load", "5,14"});
  CHECK(run(kScenario, {"--load", "5,14", "--seed", "9", "--replications", "3", "--set", "workload.requests=60"}) ==
        expected);
  CHECK(expected.at("load").size() == 2);
  for (const std::size_t load : {0, 1}) {
    const std::string rate = load == 0 ? "rate = 5.0" : "rate = 14.0";
    CHECK(expected.at("load")[load].at("policies") == run(with(changed, "rate = 10.0", rate), {}).at("policies"));
  }
  // Each of them alone is another run.
  const std::vector<std::string> options{"--seed", "9", "--replications", "3", "--set", "workload.requests=60"};
  for (std::size_t left_out = 0; left_out < options.size(); left_out += 2) {
    std::vector<std::string> others{"--load", "5,14"};
    for (std::size_t i = 0; i < options.size(); ++i)
      if (i / 2 != left_out / 2) others.push_back(options[i]);
    const ordered_json other = run(kScenario, others);
    CHECK(other.at("policies") != expected.at("policies"));
    CHECK(other.at("load") != expected.at("load"));
  }
}

TEST_CASE("sim writes its files together, or none of them") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("s.toml"), kScenario);
  const ProgramResult result = run_draftproof({"sim", folder.file("s.toml"), "--out", folder.file("out")});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.find("threshold") != std::string::npos);
  for (const char* const name :
       {"result.json", "requests.off.csv", "steps.off.json", "requests.threshold.csv", "steps.threshold.json"})
    CHECK(std::filesystem::file_size(folder.file(std::string("out/") + name)) > 100);
  // One policy's requests do not fit into the cache: nothing is written.
  write_whole_file(folder.file("bad.toml"), kScenario + "[scheduler]\nkv_blocks = 14\n");
  check_refused({"sim", folder.file("bad.toml"), "--out", folder.file("bad")}, {"of the workload: it may need"});
  CHECK(!std::filesystem::exists(folder.file("bad")));
}

TEST_CASE("an interrupted sim says what is kept of it") {
  const ProgramResult result =
      run_command({"timeout", "-s", "TERM", "3", DRAFTPROOF_PROGRAM, "sim", "million", "--replications", "1000"});
  CHECK(result.out == "");
  CHECK(result.err.ends_with("draftproof: interrupted; nothing of it is kept\n"));
}

TEST_CASE("sim takes a shipped scenario by its name") {
  const ordered_json document = json_of({"sim", "chat", "--replications", "1", "--set", "workload.requests=150"});
  CHECK(document.at("scenario").get<std::string>().ends_with("experiments/scenarios/chat.toml"));
  check_refused({"sim", "chap"}, {"scenario", "'chap' is no file", "(chat, chat_load, million); did you mean 'chat'?"});
}

TEST_CASE("sim refuses a scenario by its line") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("s.toml"), kScenario + "speed = 3\n");
  check_refused({"sim", folder.file("s.toml")},
                {"s.toml:21: policy[1].speed: unknown key 'speed'; expected one of name, "});
  std::string flickering = kScenario;
  const std::string gamma = "\"gamma\", rate = 10.0, variation = 2.0";
  flickering.replace(flickering.find(gamma), gamma.size(), "\"on_off\", rate = 1, on_s = 1e-9, off_s = 1e-9");
  write_whole_file(folder.file("flickering.toml"), flickering);
  check_refused({"sim", folder.file("flickering.toml")},
                {"flickering.toml:8: workload.arrivals: arrivals: the source is on and off for 2e-09 s"});
}

TEST_CASE("values that need more memory than there is are an error and no bug of the program") {
  if (kSanitized) return;  // address sanitizers need all of the address space
  const TemporaryFolder folder;
  write_whole_file(folder.file("s.toml"), kScenario);
  const ProgramResult result =
      run_command({"sh", "-c", "ulimit -v 2000000; exec \"$0\" sim \"$1\" --set workload.requests=4294967296",
                   DRAFTPROOF_PROGRAM, folder.file("s.toml")});
  check_refused(result, {"out of memory: these values and files need more than there is; expected smaller ones"});
}

TEST_CASE("sim refuses a change or a load by the option, before it serves anything") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("s.toml"), kScenario);
  for (const auto& [more, error] : {std::pair(std::vector<std::string>{"--set", "workload.requests=0"},
                                              "--set workload.requests=0: it is 0; expected "),
                                    {{"--set", "workload.requests=5", "--set", "workload.requests=6"},
                                     "--set: workload.requests is given several times; expected once"},
                                    {{"--load", "4,"}, "--load: number 2 is ''; expected a number"},
                                    {{"--load", "4,-1"}, "--load: is -1.0; expected requests per second, above 0"},
                                    {{"--load", "1e-12"}, "arrivals: request "}}) {
    std::vector<std::string> arguments{"sim", folder.file("s.toml"), "--out", folder.file("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused(arguments, {error});
    CHECK(!std::filesystem::exists(folder.file("out")));
  }
}

}  // namespace draftproof
