#include "tests/support/test.hpp"

namespace {

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

TEST_CASE("sim --from makes a scenario of a server's log: its arrivals, mean lengths, acceptance and load") {
  const TemporaryFolder folder;
  const std::string log = folder.file("server.log");
  const std::string start =
      "INFO 07-07 08:10:02 [core.py:112] Initializing a V1 LLM engine (v0.24.0) with config: "
      "model='meta-llama/Llama-3.1-8B-Instruct', speculative_config=SpeculativeConfig(method='eagle3', "
      "model='yuhuili/EAGLE3-LLaMA3.1-Instruct-8B', num_spec_tokens=3), dtype=torch.bfloat16, tensor_parallel_size=1\n";
  const std::string windows =
      "INFO 07-07 08:12:10 [loggers.py:257] Engine 000: Avg prompt throughput: 200.0 tokens/s, Avg generation "
      "throughput: 100.0 tokens/s, Running: 4 reqs, Waiting: 0 reqs\n"
      "INFO 07-07 08:12:10 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.00, Accepted: 1000 tokens, "
      "Drafted: 3000 tokens, Per-position acceptance rate: 0.600, 0.300, 0.100\n";
  std::string requests;  // 20 in 38 seconds, over midnight
  for (int i = 0; i < 20; ++i)
    requests += "INFO 07-07 " + std::string(i < 10 ? "23:59:" : "00:00:") +
                std::to_string(i < 10 ? 40 + 2 * i : 100 + 2 * (i - 10)).substr(i < 10 ? 0 : 1) +
                " [async_llm.py:270] Added request chatcmpl-" + std::to_string(i) + ".\n";
  requests += "INFO 07-07 00:00:20 [logger.py:43] Received request chatcmpl-19\n";  // the same, by another process
  write_whole_file(log, start + requests + windows + windows);
  const std::string saved = folder.file("saved");
  const ordered_json document = json_of({"sim", "--from", log, "--gpu", "H100", "--save", saved});
  CHECK(document.at("trace").at("requests") == 20);
  CHECK(document.at("policies")[0].at("name") == "off");
  CHECK(document.at("policies")[1].at("name") == "k3");
  CHECK(document.at("log").at("tokens_per_second") == 100.0);
  // 20 requests in 38 s: 100 and 200 tokens a second are 190 and 380 of each.
  CHECK(document.at("log").at("notes").back() == "Every request has the mean lengths, 380 and 190 tokens.");
  CHECK(document.at("policies")[1].at("tokens_per_step").get<double>() == Approx(2.0).margin(0.1));
  CHECK(
      read_whole_file(saved + "/requests.csv").starts_with("arrival_s,prompt_len,output_len\n0,380,190\n2,380,190\n"));
  // The saved scenario is the same.
  ordered_json again = json_of({"sim", saved + "/scenario.toml"});
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(again.at("policies")[i].at("throughput") == document.at("policies")[i].at("throughput"));
  // Without lines of requests the load is a closed loop, whose lengths must be said.
  write_whole_file(log, start + windows);
  const ordered_json closed = json_of({"sim", "--from", log, "--gpu", "H100", "--output", "100"});
  CHECK(closed.at("trace").is_null());
  CHECK(closed.at("requests") == 200);
  CHECK_THAT(closed.at("log").at("notes").back().get<std::string>(), Contains("4 requests at a time"));
  check_refused({"sim", "--from", log, "--gpu", "H100"}, {"--output: is missing", "tokens of a request"});
  check_refused({"sim", "--from", log}, {"--gpu: is missing"});
  write_whole_file(log, start + windows.substr(windows.find('\n') + 1));  // no load, and so neither length
  check_refused({"sim", "--from", log, "--gpu", "H100"}, {"--prompt and --output: is missing"});
  check_refused({"sim", "chat", "--from", log}, {"scenario: is given beside --from"});
  check_refused({"sim"}, {"scenario: is missing; expected one, or --from"});
  check_refused({"sim", "chat", "--gpu", "H100"}, {"--gpu: has no use without --from"});
}

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
  check_refused({"sim", "chap"},
                {"scenario", "'chap' is no file", "(chat, chat_load, guided_pools, million); did you mean 'chat'?"});
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
