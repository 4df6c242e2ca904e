// `draftproof read` as one runs it: what each kind of file is said to be.
#include "tests/support/test.hpp"

TEST_CASE("read says of any file that the program knows what it is, what of it is used, and what is not") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& name, const std::string& text) {
    const std::string path = folder.file(name);
    write_whole_file(path, text);
    const ProgramResult result = run_draftproof({"read", path});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    REQUIRE(result.out.starts_with(path));
    return result.out.substr(path.size());
  };
  const std::string window =
      "[2026-01-05 10:00:01 TP0] Decode batch, #running-req: 2, #token: 108, accept len: 1.50, accept rate: 0.36, gen "
      "throughput (token/s): 150.0, #queue-req: 0\n";
  // Two requests of 75 tokens a second each, 1.5 tokens a step.
  CHECK(read("a.log",
             "[2026-01-05 10:00:00] server_args=ServerArgs(model_path='meta-llama/Llama-3.1-8B-Instruct', tp_size=2, "
             "speculative_algorithm='EAGLE3', speculative_draft_model_path='x/y', speculative_num_steps=3, "
             "speculative_eagle_topk=1, speculative_num_draft_tokens=4)\n" +
                 window + window) ==
        " is an SGLang log: meta-llama/Llama-3.1-8B-Instruct, EAGLE-3, K = 3, TP 2, 2 windows of throughput; used: "
        "acceptance 1.50 over 2 windows, load 2, step 20 ms\n");
  // One window decodes, one does not, one is idle.
  CHECK(read("b.log",
             "INFO Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 100.0 tokens/s, Running: 1 reqs\n"
             "INFO Avg prompt throughput: 500.0 tokens/s, Avg generation throughput: 50.0 tokens/s, Running: 1 reqs\n"
             "INFO Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 0 reqs\n") ==
        " is a vLLM log: 3 windows of throughput; used: load 1, step 10 ms, 3.3 prompt tokens for one generated; not "
        "used: 1 window without a load, 1 window with prefills\n");
  // 347 of 134 steps drafted: K is not said. Long steps have no exponent.
  CHECK(read("answer.json", R"({"timings": {"predicted_n": 200, "draft_n": 347, "draft_n_accepted": 65}})") ==
        " is a llama.cpp JSON: K of at least 3; used: acceptance 1.49 over 134 steps\n");
  CHECK(
      read(
          "c.log",
          "INFO Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 100.0 tokens/s, Running: 136 reqs\n") ==
      " is a vLLM log: 1 window of throughput; used: load 136, step 1360 ms\n");
  CHECK(read("metrics.prom",
             "vllm:spec_decode_num_drafts_total 100\nvllm:spec_decode_num_draft_tokens_total 200\n"
             "vllm:spec_decode_num_accepted_tokens_total 120\n"
             "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 80\n"
             "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 40\n")
            .ends_with("used: acceptance 2.20 over 100 steps, rates of 2 positions\n"));
  CHECK(
      read("llama.prom",
           "llamacpp:tokens_predicted_total 794\nllamacpp:n_draft_total 834\nllamacpp:n_draft_accepted_total 516\n") ==
      " is a Prometheus text (llama.cpp): K of at least 3; used: acceptance of at least 2.86\n");
  CHECK_THAT(read("config.json",
                  R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32,
             "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
             "intermediate_size": 14336, "torch_dtype": "bfloat16"})"),
             Contains(" is a model's config.json: ") && Contains(", 16-bit weights; used: 8.03 B parameters") &&
                 Contains("32 layers of a mixer and a feed-forward"));
  CHECK_THAT(read("config.txt", R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 100,
             "num_attention_heads": 4, "intermediate_size": 128})"),
             Contains(" is a model's config.json: ") && Contains("2 layers"));
  CHECK(read("a.gbnf", "root ::= \"yes\" | no\nno ::= \"no\"\n") == " is a grammar (GBNF): 2 rules\n");
  CHECK(read("schema.json", R"({"type": "object", "properties": {"a": {"type": "string"}}})") ==
        " is a JSON Schema: keys type properties\n");
  CHECK(read("requests.csv", "arrival_s,prompt_len,output_len\n0,100,10\n2,300,30\n") ==
        " is a trace of requests: 2 requests; used: arrivals over 2 s (in s), prompts of 200 tokens on average, "
        "outputs of "
        "20\n");
  CHECK(read("epoch.csv", "timestamp,prompt_tokens,completion_tokens\n1715299200000,100,5\n1715299201000,100,15\n") ==
        " is a trace of requests: 2 requests; used: arrivals over 1 s (in ms), prompts of 100 tokens on average, "
        "outputs of 10\n");
  CHECK(read("chat.jinja", "{% for message in messages %}{{ message.content }}{% endfor %}") ==
        " is a chat template (Jinja); not used: add_generation_prompt, which it does not ask for\n");
}

TEST_CASE("read says what a head is of which there is its config.json alone") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_whole_file(path, text);
    const std::string shown =
        path.ends_with("/config.json") ? std::filesystem::path(path).parent_path().string() : path;
    const ProgramResult result = run_draftproof({"read", shown});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    REQUIRE(result.out.starts_with(shown));
    return result.out.substr(shown.size());
  };
  const std::string layer = R"("hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 128256, )";
  const std::string eagle3 = R"({"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000, )" + layer +
                             R"("num_hidden_layers": 1})";
  CHECK(
      read(folder.file("eagle3/config.json"), eagle3) ==
      " is a drafting head's config.json: EAGLE-3, width 4096, 1 layer, 32000 rows of logits; not used: no safetensors "
      "file of its weights\n");
  CHECK(read(folder.file("head.json"), eagle3) ==
        " is a drafting head's config.json: EAGLE-3, width 4096, 1 layer, 32000 rows of logits\n");
  CHECK(
      read(folder.file("medusa/config.json"), R"({"medusa_num_heads": 5, "medusa_num_layers": 1})") ==
      " is a drafting head's config.json: Medusa, medusa_num_heads is 5; used: K = 5; not used: no safetensors file of "
      "its weights\n");
  CHECK(read(folder.file("dflash/config.json"), R"({"architectures": ["DFlashDraftModel"], "num_hidden_layers": 5,
      "dflash_config": {"block_size": 16}, )" + layer.substr(0, layer.size() - 2) +
                                                    "}") ==
        " is a drafting head's config.json: DFlash, width 4096, 5 layers, block_size is 16; used: K = 15; not used: no "
        "safetensors file of its weights\n");
  CHECK_THAT(read(folder.file("eagle/config.json"),
                  R"({"architectures": ["LlamaForCausalLM"], )" + layer + R"("num_hidden_layers": 1})"),
             Contains(" is a model's config.json: ") &&
                 Catch::EndsWith("not used: whether its one layer is a small model or EAGLE's head\n"));
}

TEST_CASE("read counts totals that it does not know, and names a broken config.json by its own path") {
  const TemporaryFolder folder;
  const std::string log = folder.file("offline.txt");
  write_whole_file(log,
                   "Number of draft proposals: 100\nNumber of draft tokens generated: 300\n"
                   "Number of draft tokens accepted: 130\nMean acceptance length: 2.30\n"
                   "Acceptance rate at token 0: 0.70\nAcceptance rate at token 1: 0.40\n"
                   "Acceptance rate at token 2: 0.20\nDraft system efficiency: 0.43\n");
  CHECK(run_draftproof({"read", log}).out ==
        log +
            " is a vLLM log: K = 3; used: acceptance 2.30 over 100 steps, rates of 3 positions; not used: 1 line of "
            "acceptance that is not known, the first 'Draft system efficiency: 0.43'\n");
  const std::string config = folder.file("head/config.json");
  std::filesystem::create_directories(folder.file("head"));
  write_whole_file(config, R"({"medusa_num_heads": "five"})");
  check_refused({"read", folder.file("head")}, {config + ": "});
}

TEST_CASE("read says of an unknown file what it is likest to, and gives the same as JSON") {
  const TemporaryFolder folder;
  const std::string path = folder.file("notes.txt");
  write_whole_file(path, "slot print_timing: eval time of llama, but nothing of drafts\n");
  const ProgramResult unknown = run_draftproof({"read", path});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err,
             Contains(path + ": says nothing of speculation in a form that is known. It looks most like "));
  write_whole_file(path, R"({"version": 3, "command": ["a"]})");  // no document of ours
  CHECK(run_draftproof({"read", path}).exit_code == 2);
  // RecurrentGemma's list beside another, and empty.
  write_whole_file(path, R"({"layer_types": ["full_attention"], "block_types": [], "num_hidden_layers": 3,
      "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 128})");
  CHECK(run_draftproof({"read", path}).exit_code == 0);
  write_whole_file(path, "root ::= \"a\"\n");
  const auto document = json_of({"read", path});
  CHECK(document.at("read").at("format") == "grammar (GBNF)");
  CHECK(document.at("read").at("is") == nlohmann::json{"1 rule"});
  CHECK(document.at("read").at("text") == path + " is a grammar (GBNF): 1 rule");
}

TEST_CASE("read takes a trace from standard input") {
  const TemporaryFolder folder;
  const std::string trace = folder.file("trace.csv");
  write_whole_file(trace, "arrival_s,prompt_len,output_len\n0,100,10\n2,300,30\n3,300,0\n");
  CHECK(run_command({"sh", "-c", "exec \"$0\" read - < \"$1\"", DRAFTPROOF_PROGRAM, trace}).out ==
        "standard input is a trace of requests: 2 requests; used: arrivals over 2 s (in s), prompts of 200 tokens on "
        "average, outputs of 20; not used: 1 request without output\n");
  write_whole_file(trace, "arrival_s,prompt_len,output_len\n0,none,10\n");
  CHECK(run_command({"sh", "-c", "exec \"$0\" read - < \"$1\"", DRAFTPROOF_PROGRAM, trace})
            .err.find("standard input:2: the prompt length is 'none'") != std::string::npos);
}
