// `draftproof predict` as one runs it.
#include "base/printable.hpp"
#include "tests/support/test.hpp"

namespace {

const std::string kLog =
    "INFO [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.60, Accepted throughput: 160.0 tokens/s, "
    "Drafted throughput: 500.0 tokens/s, Accepted: 1600 tokens, Drafted: 5000 tokens, Per-position acceptance rate: "
    "0.700, 0.450, 0.250, 0.130, 0.070, Avg Draft acceptance rate: 32.0%\n";

std::vector<std::string> arguments_with(const std::vector<std::string>& more) {
  std::vector<std::string> all{"predict", "--model", "Llama-3.1-8B-Instruct", "--gpu", "H100", "--drafter", "EAGLE-3"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("notes of a batch speak of what one group of GPUs has") {
  const auto printed = [](const std::string& groups) {
    return run_draftproof({"predict", "--model", "DeepSeek-V3", "--gpu", "H100", "--tp", "16", "--dp", groups,
                           "--engine", "SGLang", "--drafter", "MTP", "--batch", "1024", "--context", "128"})
        .out;
  };
  CHECK_THAT(printed("1"), Contains("a plain step has 1024 requests, and captured graphs end at 512"));
  CHECK_THAT(printed("4"), !Contains("captured graphs"));
}

TEST_CASE("A config.json decides precision and memory, the words of its folder nothing") {
  const TemporaryFolder folder;
  const auto document_of = [&](const std::string& name, const std::string& config,
                               const std::vector<std::string>& more = {}) {
    std::filesystem::create_directories(folder.file(name));
    write_whole_file(folder.file(name) + "/config.json", config);
    std::vector<std::string> arguments{"predict", "--model", folder.file(name), "--gpu", "H200", "--drafter", "n-gram"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments);
  };
  const std::string llama = R"("hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256)";
  CHECK(document_of("Llama-FP8-awq", "{" + llama + R"(, "time_step_limit": [0.0, Infinity]})").at("precision") ==
        "16-bit weights");
  const std::string quantised = R"(, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}})";
  CHECK(document_of("plain-bf16", "{" + llama + quantised).at("precision") == "4-bit weights");
  CHECK(document_of("kv", "{" + llama + quantised, {"--precision", "KV fp8"}).at("precision") ==
        "4-bit weights, 8-bit KV");
  // Gemma-4-31B: 61.4 GB of weights, 50 layers of 1,024 tokens and 10 of all, 3.52 GB a request of 32,768; 18 fit into
  // nine tenths of 141 GB.
  const ordered_json windows = document_of("gemma", R"({"model_type": "gemma4_text", "hidden_size": 5376,
      "num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 256,
      "global_head_dim": 512, "num_global_key_value_heads": 4, "attention_k_eq_v": true, "vocab_size": 262144,
      "intermediate_size": 21504, "sliding_window": 1024})",
                                           {"--context", "32768", "--batch", "1,32"});
  CHECK_THAT(windows.dump(), Contains("the memory holds 18 requests"));
  // A preset's name with the word of another precision is asked about.
  CHECK_THAT(run_draftproof({"predict", "--model", "Llama-3.1-8B-FP8", "--gpu", "H200", "--drafter", "n-gram"}).err,
             Contains("--precision: is missing; 'Llama-3.1-8B-FP8' may be a checkpoint of fp8"));
}

TEST_CASE("predict answers with rows, the best of each batch, a break-even and one sentence") {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/server.log";
  write_whole_file(log, kLog);
  const ordered_json document = json_of(
      arguments_with({"--metrics", log, "--batch", "1,8,64", "--context", "512", "--out", folder.path() + "/out"}));
  // Chains of 1 to 8 and trees of four sizes, at three batch sizes.
  CHECK(document.at("rows").size() == 3 * (8 + 4));
  for (const auto& row : document.at("rows")) {
    CHECK(row.at("low").get<double>() < row.at("speedup").get<double>());
    CHECK(row.at("speedup").get<double>() < row.at("high").get<double>());
    CHECK(row.at("step_ratio").get<double>() > 1.0);
    CHECK(row.at("k").is_null() != row.at("tree").is_null());
    CHECK(row.at("tokens_per_step").get<double>() / row.at("step_ratio").get<double>() ==
          Approx(row.at("speedup").get<double>()));
    if (row.at("k") == 5) CHECK(row.at("tokens_per_step").get<double>() == Approx(2.6));
  }
  REQUIRE(document.at("best").size() == 3);
  CHECK(document.at("best")[0].at("batch") == 1);
  CHECK(document.at("best")[0].at("pays") == true);
  CHECK(document.at("best")[0].at("k").is_number());  // vLLM verifies chains
  CHECK(document.at("best")[0].at("best_tree").at("tree").at("nodes").get<int>() >= 8);
  CHECK((document.at("break_even_batch").is_null() || document.at("break_even_batch").get<int>() > 1));
  CHECK(document.at("advice").get<std::string>().starts_with("You run K = 5: "));
  CHECK(document.at("acceptance").get<std::string>().starts_with("vLLM log "));
  CHECK(std::filesystem::exists(folder.path() + "/out/predict.json"));
  CHECK((document.at("files").at("figure").is_null() || std::filesystem::exists(folder.path() + "/out/predict.svg")));

  const ProgramResult text = run_draftproof(arguments_with({"--metrics", log, "--calibrate-with", "8.0,11.5@1:3"}));
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("<- best") != std::string::npos);
  CHECK(text.out.find("Your step takes 11.5 ms at batch 1, K = 3: ") != std::string::npos);
}

TEST_CASE("every option of predict reaches the drafter that is asked for and those that it is compared with") {
  const auto predicted = [](const std::string& drafter, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"predict", "--model", "Llama-3.1-8B-Instruct", "--gpu", "H100", "--drafter",
                                       drafter,   "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_draftproof(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return ordered_json::parse(result.out);
  };
  const ordered_json standard = predicted("EAGLE-3", {});
  for (const std::vector<std::string>& option : std::vector<std::vector<std::string>>{
           {"--batch", "2,16"},
           {"--context", "30000"},
           {"--drafts-max", "2"},
           {"--guidance"},
           {"--acceptance-factor", "0.5"},
           {"--draft-cost-factor", "40"},
           {"--tp", "4"},
           {"--precision", "fp8"},
           {"--engine", "SGLang"},
       }) {
    INFO(option[0]);
    const ordered_json alone = predicted("EAGLE-3", option);
    CHECK(alone.at("best") != standard.at("best"));
    std::vector<std::string> beside{"--compare-drafters", "EAGLE-3"};
    beside.insert(beside.end(), option.begin(), option.end());
    const ordered_json compared = predicted("n-gram", beside).at("compared")[0];
    CHECK(compared.at("break_even_batch") == alone.at("break_even_batch"));
    REQUIRE(compared.at("best").size() == alone.at("best").size());
    for (std::size_t i = 0; i < compared.at("best").size(); ++i)
      for (const auto& [key, value] : compared.at("best")[i].items()) {
        INFO(key);
        CHECK(value == alone.at("best")[i].at(key));
      }
  }
  // With and without guidance are each other's comparison.
  const ordered_json plain = predicted("n-gram", {"--compare-guidance"});
  const ordered_json guided = predicted("n-gram", {"--compare-guidance", "--guidance"});
  for (const auto& [one, other] : {std::pair(plain, guided), std::pair(guided, plain)})
    for (std::size_t i = 0; i < one.at("best").size(); ++i)
      CHECK(one.at("compared")[0].at("best")[i].at("speedup") == other.at("best")[i].at("speedup"));
}

TEST_CASE("a prediction that finds the disk full is one error, also where its figure could not be written either") {
  const TemporaryFolder folder;
  // No file may grow beyond 2 blocks of 512 bytes.
  std::vector<std::string> command{"sh", "-c", "ulimit -f 2; exec \"$@\"", "sh", DRAFTPROOF_PROGRAM};
  for (const std::string& argument : arguments_with({"--out", folder.file("out")})) command.push_back(argument);
  const ProgramResult full = run_command(command);
  check_refused(full, {"error: " + folder.file("out") + "/predict.json: "});
  CHECK(folder.file_names().empty());
}

TEST_CASE("predict refuses what it cannot use in one line") {
  const TemporaryFolder folder;
  const std::string good = folder.path() + "/good.log";
  const std::string bad = folder.path() + "/bad.log";
  write_whole_file(good, kLog);
  write_whole_file(bad, kLog + "SpecDecoding metrics: Mean acceptance length: two, Accepted: 1 tokens\n");
  const std::string time = "ms; expected a time from 0.001 to 1e6 ms";
  for (const auto& [more, error] :
       {std::pair(std::vector<std::string>{"--acceptance", "constant:2"},
                  std::string("--acceptance: rate 1 is '2'; expected a number in [0, 1]")),
        {{"--acceptance", "constant:0.7", "--metrics", "x"}, "expected one of them"},
        {{"--metrics", "no-such-file"}, "no-such-file"},
        {{"--calibrate-with", "-3"}, time},
        {{"--calibrate-with", "1e-9"}, time},
        {{"--calibrate-with", "18446744073709551616"}, time},
        {{"--metrics", good, "--metrics-name", "x"}, "--metrics-name: has no use with "},
        {{"--metrics", good, "--metrics-rates", "conditional"}, "good.log, which is a vLLM log"},
        {{"--expert-parallel"}, "--expert-parallel: has no use with Llama-3.1-8B, which has no experts"},
        {{"--pp", "33"}, "--pp: is 33; expected at most the 32 layers of Llama-3.1-8B"},
        {{"--metrics", bad}, "bad.log, line 2: mean acceptance length is"}})
    check_refused(arguments_with(more), {error});
  check_refused({"predict", "--model", "Llama-3.1-8B-Instruct", "--gpu", "H100", "--drafter", "n-gram",
                 "--draft-precision", "fp8"},
                {"--draft-precision: has no use with drafter n-gram, which has no weights"});
  check_refused({"predict", "--model", "Llama-3.1-70B", "--gpu", "H100", "--tp", "4", "--drafter", "Llama-3.1-8B",
                 "--draft-tp", "8"},
                {"--draft-tp: is 8; expected at most the 4 GPUs of the target, or --draft-gpu"});
}

TEST_CASE("a drafter with a device of its own leaves the target's waiting; a note and the configuration say so") {
  const std::vector<std::string> own{"predict", "--model",   "Llama-3.1-70B", "--gpu",        "H100",        "--tp",
                                     "4",       "--drafter", "Llama-3.1-8B",  "--acceptance", "constant:0.8"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = own;
    all.insert(all.end(), more.begin(), more.end());
    return json_of(all);
  };
  const auto speedup = [](const ordered_json& document) { return document.at("best")[0].at("speedup").get<double>(); };
  const ordered_json shared = with({});
  const ordered_json one = with({"--draft-tp", "1"});
  const ordered_json apart = with({"--draft-gpu", "L4"});
  CHECK(shared.at("notes").dump().find("wait") == std::string::npos);
  CHECK_THAT(one.at("notes").dump(), Contains("The drafter is on 1 of the target's GPUs: at batch 1, K = "));
  CHECK_THAT(apart.at("notes").dump(), Contains("The drafter is on 1 L4 of its own: at batch 1, K = "));
  CHECK(speedup(shared) > speedup(one));  // the weights of 8B are read by one GPU, not four
  CHECK(speedup(one) > speedup(apart));
  // Drafting ahead on the same device: all ready, the drafting is hidden; none ready, nothing is gained.
  const std::vector<std::string> h100{"--draft-gpu", "H100"};
  const auto ahead = [&](const std::string& hit) {
    return speedup(with({"--draft-gpu", "H100", "--ahead", "outcomes=8,hit=" + hit}));
  };
  CHECK(ahead("1") > 1.2 * speedup(with(h100)));
  CHECK(ahead("0") == Approx(speedup(with(h100))));
  // Of compared drafters n-gram has no device, and nothing to draft ahead on; another one does as is said.
  const auto compared = [&](const std::string& drafter, std::vector<std::string> more) {
    more.insert(more.end(), {"--compare-drafters", drafter});
    return with(more).at("compared")[0].at("best")[0].at("speedup").get<double>();
  };
  const std::vector<std::string> never{"--draft-gpu", "H100", "--ahead", "outcomes=8,hit=0,backup=none"};
  CHECK(compared("n-gram", never) == compared("n-gram", {}));
  CHECK(compared("Llama-3.2-1B", never) < compared("Llama-3.2-1B", {"--draft-gpu", "H100"}));
  std::vector<std::string> without = own;
  without.insert(without.end(), {"--ahead", "outcomes=8,hit=0.9"});
  check_refused(without, {"--ahead: drafts while the target verifies; expected --draft-gpu, devices of its own"});
}

TEST_CASE("a server's log alone says what predict asks for, but for the GPU, packed or on standard input") {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/server.log";
  const std::string start =
      "INFO Initializing a V1 LLM engine (v0.11.0) with config: model='meta-llama/Llama-3.1-8B-Instruct', "
      "speculative_config=SpeculativeConfig(method='eagle3', model='a/b', num_spec_tokens=5), dtype=torch.bfloat16, "
      "tensor_parallel_size=1, quantization=None, kv_cache_dtype=auto\n";
  const std::string load =
      "INFO Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 2400.0 tokens/s, "
      "Running: 16 reqs, Waiting: 0 reqs\n";
  write_whole_file(log, start + load + kLog);
  const ordered_json document = json_of({"predict", log, "--gpu", "H100"});
  CHECK(document.at("model") == "Llama-3.1-8B");
  CHECK(document.at("drafter") == "EAGLE-3");
  CHECK(document.at("tp") == 1);
  REQUIRE(document.at("best").size() == 1);
  CHECK(document.at("best")[0].at("batch") == 16);
  // 2,400 tokens a second of 16 requests in steps of 2.6: 17.3 ms, but for the share of steps without a draft.
  REQUIRE(document.at("calibration").size() == 1);
  CHECK(document.at("calibration")[0].at("k") == 5);
  const std::string read =
      log +
      " is a vLLM log (0.11.0): meta-llama/Llama-3.1-8B-Instruct, bf16, EAGLE-3, K = 5, TP 1, 1 window of "
      "throughput; used: acceptance 2.60 over 1000 steps, rates of 5 positions, load 16, step ";
  CHECK_THAT(document.at("read").at("text").get<std::string>(), Catch::StartsWith(read));
  CHECK(document.at("running_k") == 5);
  CHECK_THAT(run_draftproof({"predict", log, "--gpu", "H100"}).out, Catch::StartsWith(read));
  CHECK_THAT(run_draftproof({"read", log}).out, Catch::StartsWith(read));
  // Options win over the log.
  const ordered_json asked = json_of({"predict", log, "--gpu", "H100", "--model", "Qwen3-8B", "--batch", "1,4"});
  CHECK(asked.at("model") == "Qwen3-8B");
  CHECK(asked.at("best").size() == 2);
  const ProgramResult refused = run_draftproof({"predict", log});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("--gpu: is missing, and " + log + " does not say it") != std::string::npos);
  CHECK(run_draftproof({"predict", "--gpu", "H100"}).err.find("--model: is missing") != std::string::npos);
}

TEST_CASE("a benchmark alone says its model and load, and GPUs that do not hold the model are said to be the log's") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/run.json";
  write_whole_file(file, R"({"model_id": "meta-llama/Llama-3.1-8B-Instruct", "max_concurrency": 16,
      "spec_decode_acceptance_length": 2.8, "spec_decode_num_drafts": 50, "spec_decode_draft_tokens": 150,
      "spec_decode_accepted_tokens": 90, "spec_decode_per_position_acceptance_rates": [0.9, 0.6, 0.3]})");
  const ordered_json document = json_of({"predict", file, "--gpu", "H100", "--drafter", "EAGLE-3"});
  CHECK(document.at("model") == "Llama-3.1-8B");
  REQUIRE(document.at("best").size() == 1);
  CHECK(document.at("best")[0].at("batch") == 16);
  CHECK(document.at("calibration").empty());
  const std::string log = folder.path() + "/server.log";
  write_whole_file(
      log,
      "INFO Initializing a V1 LLM engine (v0.11.0) with config: model='meta-llama/Llama-3.3-70B-Instruct', "
      "speculative_config=SpeculativeConfig(method='eagle3', model='a/b', num_spec_tokens=5), "
      "dtype=torch.bfloat16, tensor_parallel_size=1, quantization=None, kv_cache_dtype=auto\n" +
          kLog);
  check_refused({"predict", log, "--gpu", "H100"},
                {"--tp: is said by the log to be 1; expected at least 2, since the 16-bit weights of"});
  check_refused({"predict", log, "--gpu", "H100", "--tp", "1"}, {"--tp: is 1; expected at least 2"});
}

TEST_CASE("the engine is that of the file's format where no line says how the server was started") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/file";
  const auto predicted = [&](const std::string& text, const std::string& drafter = "EAGLE-3") {
    write_whole_file(file, text);
    return run_draftproof({"predict", file, "--model", "Llama-3.1-8B", "--gpu", "H100", "--drafter", drafter,
                           "--metrics-drafts", "3", "--batch", "8"});
  };
  const std::string sglang =
      "Decode batch, #running-req: 2, #token: 108, accept len: 1.50, gen throughput (token/s): 150.0, #queue-req: 0\n";
  CHECK(predicted("[2026-01-05 10:00:01 TP0] " + sglang).out.find(" SGLang, drafter") != std::string::npos);
  CHECK(predicted(R"({"timings": {"predicted_n": 16, "draft_n": 12, "draft_n_accepted": 9}})")
            .out.find(" other engines, drafter") != std::string::npos);
  CHECK(predicted("trtllm_spec_decode_acceptance_length{model_name=\"m\"} 2.75\n").out.find(" TensorRT-LLM, drafter") !=
        std::string::npos);
  // Ranks of a server of which nobody knows how many there are: no load of a group, no step.
  const std::string ranks =
      predicted("[2026-01-05 10:00:01 DP0 TP0] " + sglang + "[2026-01-05 10:00:01 DP5 TP5] " + sglang).out;
  CHECK(ranks.find("not used: the windows of throughput, which are of 2 groups, and no line says of how many") !=
        std::string::npos);
  CHECK(ranks.find("Your step") == std::string::npos);
  const ProgramResult refused = run_draftproof({"predict", file, "--gpu", "H100"});
  CHECK(refused.err.find("--model: is missing, and " + file + " has no line of a server's start that says it") !=
        std::string::npos);
}

TEST_CASE("a log's prompts are a share of the time that speculation does not shorten") {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/server.log";
  const auto predicted = [&](const std::string& prompts, const std::vector<std::string>& more = {}) {
    write_whole_file(
        log,
        "INFO Initializing a V1 LLM engine (v0.24.0) with config: model='meta-llama/Llama-3.1-8B-Instruct', "
        "speculative_config=None, tensor_parallel_size=1, data_parallel_size=1, quantization=None\n"
        "INFO Avg prompt throughput: " +
            prompts + " tokens/s, Avg generation throughput: 700.0 tokens/s, Running: 16 reqs, Waiting: 0 reqs\n");
    std::vector<std::string> arguments{"predict",   log,       "--gpu",        "H100",
                                       "--drafter", "EAGLE-3", "--acceptance", "typical"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments);
  };
  const ordered_json none = predicted("0.0");
  const ordered_json many = predicted("30000.0");
  CHECK(none.at("prefills_of_log") == false);
  CHECK(none.at("best")[0].at("prefill_share") == 0.0);
  REQUIRE(many.at("prefills_of_log") == true);
  // 30,000 / 700 prompt tokens for each that is generated.
  CHECK(many.at("prompt").get<double>() / many.at("output").get<double>() == Approx(30000.0 / 700.0).epsilon(0.03));
  CHECK(many.at("best")[0].at("prefill_share").get<double>() > 0.5);
  CHECK(many.at("best")[0].at("speedup").get<double>() < none.at("best")[0].at("speedup").get<double>());
  // Lengths that are given hold.
  CHECK(predicted("30000.0", {"--prompt", "100", "--output", "100"}).at("prompt") == 100);
}

TEST_CASE("a step out of windows full of prefills calibrates nothing, unless asked for by name") {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/server.log";
  std::string text =
      "INFO Initializing a V1 LLM engine (v0.24.0) with config: model='meta-llama/Llama-3.1-8B-Instruct', "
      "speculative_config=None, tensor_parallel_size=1, data_parallel_size=1, quantization=None\n";
  for (const auto& [prompt, generated] : {std::pair("8923.6", "323.9"), {"10412.6", "157.8"}, {"9666.8", "194.0"}})
    text += std::string("INFO Avg prompt throughput: ") + prompt +
            " tokens/s, Avg generation throughput: " + generated + " tokens/s, Running: 32 reqs, Waiting: 0 reqs\n";
  write_whole_file(log, text);
  const std::vector<std::string> question{"predict",   log,       "--gpu",        "A100-80GB",
                                          "--drafter", "EAGLE-3", "--acceptance", "typical"};
  const ordered_json document = json_of(question);
  REQUIRE(document.at("calibration").size() == 1);
  CHECK_THAT(document.at("calibration")[0].at("refused").get<std::string>(), Contains("full of prefills"));
  CHECK_THAT(run_draftproof(question).out, Contains("It is not used: its windows are full of prefills"));
  std::vector<std::string> anyway = question;
  anyway.emplace_back("--calibrate-anyway");
  CHECK(json_of(anyway).at("calibration")[0].at("refused").is_null());
  check_refused(arguments_with({"--calibrate-with", log}), {"--calibrate-with", "--calibrate-anyway takes it"});
  check_refused(arguments_with({"--calibrate-with", "200"}), {"times what this GPU should need", "--calibrate-anyway"});
}

TEST_CASE("a log of a server that does not speculate says the plain step, and no acceptance is made up for it") {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/server.log";
  std::string text =
      "[2026-06-25 09:30:00] server_args=ServerArgs(model_path='Qwen/Qwen3-30B-A3B', dtype='auto', quantization=None, "
      "kv_cache_dtype='auto', tp_size=1, pp_size=1, dp_size=1, ep_size=1, speculative_algorithm=None, "
      "speculative_draft_model_path=None, speculative_num_steps=None)\n";
  for (const char* rate : {"148.64", "147.64", "146.66", "146.12"})
    text += std::string(
                "[2026-06-25 09:35:19] Decode batch, #running-req: 1, #token: 104, token usage: 0.00, cuda graph: "
                "True, gen throughput (token/s): ") +
            rate + ", #queue-req: 0\n";
  write_whole_file(log, text);
  check_refused({"predict", log, "--gpu", "H100", "--drafter", "EAGLE-3"},
                {"--acceptance: is missing, and " + log + " has no acceptance of EAGLE-3", "or typical"});
  check_refused({"predict", log, "--gpu", "H100"}, {"--drafter", "EAGLE-3, MTP, n-gram, ... (draftproof presets)"});
  const ordered_json document =
      json_of({"predict", log, "--gpu", "H100", "--drafter", "EAGLE-3", "--acceptance", "typical"});
  REQUIRE(document.at("calibration").size() == 1);
  CHECK(document.at("calibration")[0].at("ms").get<double>() == Approx(6.8).epsilon(0.01));
  CHECK(document.at("calibration")[0].at("k") == 0);
  CHECK(document.at("best")[0].at("batch") == 1);
  // The same by --calibrate-with.
  const ordered_json beside = json_of({"predict", "--model", "Qwen3-30B-A3B", "--gpu", "H100", "--drafter", "EAGLE-3",
                                       "--engine", "SGLang", "--batch", "1", "--calibrate-with", log});
  CHECK(beside.at("calibration")[0].at("ms") == document.at("calibration")[0].at("ms"));
  write_whole_file(log, "srv update_slots: all slots are idle\nslot 0: n_past = 12\n");
  const ProgramResult unknown = run_draftproof({"predict", log, "--gpu", "H100", "--drafter", "EAGLE-3"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, Contains("says nothing of speculation in a form that is known. It looks most like "));
}

// A command of the page is an indented line, what it prints are the quoted lines behind it.
TEST_CASE("the page on whether to turn speculation on runs, and its commands print what it quotes") {
  const std::string root = DRAFTPROOF_SOURCE_DIR;
  std::istringstream page(read_whole_file(root + "/docs/should_i.md"));
  std::string line, out;
  int commands = 0, quotes = 0;
  while (std::getline(page, line)) {
    if (line.starts_with("    ./draftproof ")) {
      std::vector<std::string> words = shell_arguments(line.substr(17));
      for (std::string& word : words)
        if (word.starts_with("docs/")) word.insert(0, root + "/");
      const ProgramResult result = run_draftproof(words);
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      out = result.out;
      ++commands;
    } else if (line.starts_with("> ")) {
      INFO(line << "\n" << out);
      CHECK(out.find(line.substr(2)) != std::string::npos);
      ++quotes;
    }
  }
  CHECK(commands == 5);
  CHECK(quotes == 8);
}

TEST_CASE("acceptance takes what a draft costs on a machine from the cost model of predict") {
  const auto predicted = json_of({"predict", "--model", "Llama-3.1-8B", "--gpu", "H100", "--drafter", "EAGLE-3",
                                  "--batch", "8", "--acceptance", "constant:0.8"});
  double step_ratio = 0.0, speedup = 0.0;
  for (const auto& row : predicted.at("rows")) {
    if (row.at("k") != 4) continue;
    step_ratio = row.at("step_ratio");
    speedup = row.at("speedup");
  }
  const auto acceptance =
      json_of({"acceptance", "constant:0.8", "--cost-of", "Llama-3.1-8B,H100,EAGLE-3", "--batch", "8"});
  CHECK(acceptance.at("draft_cost").get<double>() == Approx((step_ratio - 1.0) / 4.0).epsilon(1e-12));
  CHECK(acceptance.at("sources").at(0).at("speedup").at(4).get<double>() == Approx(speedup).epsilon(1e-12));
  CHECK(acceptance.at("draft_cost_of") ==
        "Llama-3.1-8B (16-bit weights) on H100 SXM 80GB, vLLM, drafter EAGLE-3, batch 8");
  check_refused({"acceptance", "constant:0.8", "--cost-of", "Llama-3.1-8B,H100"}, {"--cost-of", "2 names"});
  check_refused({"acceptance", "constant:0.8", "--cost-of", "Llama-3.1-8B,H100,EAGLE-3", "--draft-cost", "0.1"},
                {"--draft-cost", "--cost-of"});
  check_refused({"acceptance", "constant:0.8", "--batch", "8"}, {"--batch", "--cost-of"});
}
