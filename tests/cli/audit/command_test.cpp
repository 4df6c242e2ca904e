// `draftproof audit` on sample files written by a Python script, as a user of another engine would.
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

using nlohmann::json;

const std::string kScript = std::string(DRAFTPROOF_SOURCE_DIR) + "/tests/reference/trace/make_audit_samples.py";

bool write_samples(const TemporaryFolder& folder) {
  const ProgramResult written = run_command({"python3", kScript, folder.path(), "60000", "6000"});
  if (written.exit_code == 0) return true;
  INFO(written.err);
  CHECK(run_command({"sh", "-c", "command -v python3"}).exit_code != 0);
  WARN("SKIPPED: python3 is not installed");
  return false;
}

// For --alpha, of an audit that is one of so many of correct samplers in its test case.
std::string level(int decisions) {
  return draftproof::short_number(draftproof::suite_level(decisions));
}

json test_named(const json& document, const std::string& name) {
  for (const json& test : document.at("tests")) {
    if (test.at("name") == name) return test;
  }
  FAIL("no test " << name);
  return {};
}

TEST_CASE("audit tells biased from unbiased files of a Python script") {
  const TemporaryFolder folder;
  if (!write_samples(folder)) return;
  const std::vector<std::string> csv{"--probs", folder.file("probs.csv")};
  struct Case {
    std::string file;
    std::vector<std::string> more;
    std::string rejecting;  // a test that must find it
  };
  const std::vector<Case> cases{{"draws_#.safetensors", {}, "tokens"},
                                {"steps_#.safetensors", {"--tv-wanted", "0.15"}, "recovered_support"},
                                {"counts_#.csv", csv, "tokens_g"}};
  for (const Case& c : cases) {
    for (const bool biased : {false, true}) {
      std::string name = c.file;
      name.replace(name.find('#'), 1, biased ? "biased" : "unbiased");
      INFO(name);
      std::vector<std::string> arguments{"audit", folder.file(name), "--json", "--alpha", level(3)};
      arguments.insert(arguments.end(), c.more.begin(), c.more.end());
      const ProgramResult result = run_draftproof(arguments);
      CHECK(result.exit_code == (biased ? 1 : 0));
      const json document = json::parse(result.out);
      CHECK(document.at("verdict") == (biased ? "biased" : "consistent"));
      const json test = test_named(document, c.rejecting);
      CHECK(test.at("rejects") == biased);
      for (const char* key : {"n", "df", "alpha", "statistic", "p_value", "p_value_holm", "detectable_tv",
                              "estimated_tv", "worst_cells", "sentence"})
        CHECK(test.contains(key));
      if (biased) {
        REQUIRE_FALSE(test.at("worst_cells").empty());
        CHECK(test.at("worst_cells")[0].contains("observed"));
        CHECK(test.at("worst_cells")[0].contains("expected"));
        CHECK(result.err.find("warning: biased") != std::string::npos);
      }
    }
  }
}

TEST_CASE("audit as text ends with the verdict and draws its figure") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("p.csv"), "token,prob\n0,0.5\n1,0.5\n");
  write_whole_file(folder.file("right.csv"), "token,count\n0,50100\n1,49900\n");
  write_whole_file(folder.file("wrong.csv"), "token,count\n0,52000\n1,48000\n");
  const auto audit = [&](const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"audit", folder.file(name), "--probs", folder.file("p.csv")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_draftproof(arguments);
  };
  const ProgramResult right = audit("right.csv");
  CHECK(right.exit_code == 0);
  CHECK(right.err.empty());
  CHECK(right.out.find("verdict: consistent") != std::string::npos);
  const ProgramResult wrong = audit("wrong.csv");
  CHECK(wrong.exit_code == 1);
  CHECK(wrong.out.find("group 0, token 0: 52000 observed, 50000 expected") != std::string::npos);
  CHECK(wrong.out.find("verdict: biased") != std::string::npos);
  if (!gnuplot_is_here()) return;
  const ProgramResult drawn = audit("wrong.csv", {"--figure", folder.file("worst.svg")});
  CHECK(drawn.exit_code == 1);
  CHECK(read_whole_file(folder.file("worst.svg")).find("token 0: 52000 of 50000") != std::string::npos);
}

TEST_CASE("audit of few samples exits with 4 and a verdict") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("p.csv"), "token,prob\n0,0.5\n1,0.5\n");
  write_whole_file(folder.file("c.csv"), "token,count\n0,51\n1,49\n");
  const ProgramResult result =
      run_draftproof({"audit", folder.file("c.csv"), "--probs", folder.file("p.csv"), "--json"});
  CHECK(result.exit_code == 4);
  const json document = json::parse(result.out);
  CHECK(document.at("verdict") == "inconclusive");
  CHECK(document.at("detectable_tv").get<double>() > 0.05);
}

TEST_CASE("audit takes what verify wrote of a trace") {
  const TemporaryFolder folder;
  if (!write_samples(folder)) return;
  // The steps again, by our verifier: the trace is the file without its outputs, which --outputs takes from the result.
  const std::string strip =
      "import json,struct,sys\n"
      "raw=open(sys.argv[1],'rb').read(); n=struct.unpack('<Q',raw[:8])[0]; h=json.loads(raw[8:8+n]); d=raw[8+n:]\n"
      "out,data={},b''\n"
      "for k,v in h.items():\n"
      "  if k in ('output_tokens','num_accepted'): continue\n"
      "  b,e=v['data_offsets']; v['data_offsets']=[len(data),len(data)+e-b]; data+=d[b:e]; out[k]=v\n"
      "t=json.dumps(out).encode(); t+=b' '*(-len(t)%8)\n"
      "open(sys.argv[2],'wb').write(struct.pack('<Q',len(t))+t+data)\n";
  const std::string trace = folder.file("trace.safetensors");
  REQUIRE(run_command({"python3", "-c", strip, folder.file("steps_biased.safetensors"), trace}).exit_code == 0);
  const std::string result = folder.file("result.safetensors");
  REQUIRE(run_draftproof({"verify", trace, "--out", result}).exit_code == 0);
  const ProgramResult audit =
      run_draftproof({"audit", trace, "--outputs", result, "--tv-wanted", "0.15", "--alpha", level(1), "--json"});
  CHECK(audit.exit_code == 0);
  CHECK(json::parse(audit.out).at("verdict") == "consistent");
  // The result says which verifier emitted it.
  REQUIRE(run_draftproof({"verify", trace, "--verifier", "block", "--out", result}).exit_code == 0);
  const ProgramResult block =
      run_draftproof({"audit", trace, "--outputs", result, "--tv-wanted", "0.15", "--alpha", level(1), "--json"});
  CHECK(block.exit_code == 0);
  CHECK(json::parse(block.out).at("verifier") == "block");
}

TEST_CASE("audit compares the numbers beside the tokens with the rows") {
  const TemporaryFolder folder;
  TraceBuilder trace;
  trace.set<float>("target_probs", {2, 2}, {0.5f, 0.5f, 0.25f, 0.75f});
  trace.set<std::int32_t>("draft_tokens", {0}, {}).set<std::int32_t>("cu_num_draft_tokens", {0, 0});
  TraceBuilder outputs;
  outputs.set<std::int32_t>("output_tokens", {2, 1}, {0, 1});
  const auto audit = [&] {
    return run_draftproof({"audit", trace.write(folder.file("t.safetensors")), "--outputs",
                           outputs.write(folder.file("o.safetensors")), "--json"});
  };
  outputs.set<float>("logprob", {2, 1}, {-0.6931f, -0.2877f});  // log 0.5, log 0.75
  CHECK(json::parse(audit().out).at("verdict") == "inconclusive");
  outputs.set<float>("logprob", {2, 1}, {-0.6931f, -0.5f});
  const ProgramResult wrong = audit();
  CHECK(wrong.exit_code == 1);
  CHECK_THAT(json::parse(wrong.out).at("sentence").get<std::string>(),
             Contains("1 of 2 steps are malformed") && Contains("logprob[1, 0] is -0.287682 here and -0.5 there"));
  outputs.set<std::int32_t>("kept_count", {2, 1}).drop("logprob");
  CHECK_THAT(audit().out, Contains("kept_count[1, 0] is 2 here and 1 there"));
  outputs.set<float>("logprobs", {2, 1}, {0, 0}).drop("kept_count");
  CHECK(audit().exit_code == 2);
  CHECK_THAT(audit().err, Contains("'logprobs'") && Contains("is not a tensor of a trace"));
}

TEST_CASE("audit checks what filters left of logits, row by row, without sampling") {
  const TemporaryFolder folder;
  TraceBuilder file;
  file.set<float>("target_logits", {2, 3}, {0.f, 1.f, 2.f, 2.f, 1.f, 0.f});
  file.set<float>("top_p", {0.5f, 0.5f});
  file.set<float>("filtered_logits", {2, 3}, {-1e30f, -1e30f, 2.f, 2.f, 1.f, 0.f});
  const std::string path = file.write(folder.file("filtered.safetensors"));
  const ProgramResult found = run_draftproof({"audit", path, "--json"});
  CHECK(found.exit_code == 1);
  const json document = json::parse(found.out);
  CHECK(document.at("verdict") == "biased");
  CHECK(document.at("input").at("kind") == "filters");
  CHECK(document.at("failing") == 1);
  const json& row = document.at("rows").at(0);
  CHECK(row.at("row") == 1);
  CHECK(row.at("fault") == "wrong_set");
  CHECK(row.at("wrongly_kept") == json::array({1, 2}));
  // softmax(2, 1, 0) without its first token: (e + 1) / (e^2 + e + 1)
  CHECK(row.at("wrongly_kept_mass").get<double>() == Approx(0.33475904).margin(1e-6));
  CHECK(row.at("distance").get<double>() == Approx(0.33475904).margin(1e-6));
  const ProgramResult text = run_draftproof({"audit", path});
  CHECK(text.out.find("row 1: wrong_set, 3 kept where 1 should be") != std::string::npos);
  file.set<std::uint8_t>("kept", {2, 3}, {0, 0, 1, 1, 0, 0}).drop("filtered_logits").write(path);
  CHECK(run_draftproof({"audit", path}).exit_code == 0);
  CHECK(run_draftproof({"audit", path, "--figure", folder.file("f.svg")}).exit_code == 2);
}

TEST_CASE("the self test of the audit prints its rate") {
  const ProgramResult result = run_draftproof({"audit", "--self-test", "20", "--json"});
  CHECK(result.exit_code == (result.err.empty() ? 0 : 1));
  const json document = json::parse(result.out);
  CHECK(document.at("batteries") == 20);
  CHECK(document.at("impossible") == 0);
  CHECK(draftproof::possible_rates(document.at("accused").get<std::int64_t>(), 20, 2).low <=
        document.at("alpha").get<double>());
  CHECK(document.at("least_ks_p_value_holm").get<double>() > draftproof::suite_level(2));
  CHECK(document.at("tests").size() >= 18);
  CHECK(document.at("accused_interval").size() == 2);
}

TEST_CASE("audit without a file or with useless options is one line and exit code 2") {
  const auto fails = [](std::vector<std::string> arguments, const std::string& named) {
    arguments.insert(arguments.begin(), "audit");
    check_refused(arguments, {named});
  };
  fails({}, "file: is missing");
  fails({"x.safetensors", "--alpha", "0"}, "--alpha");
  fails({"x.safetensors", "--alpha", "nan"}, "--alpha");
  fails({"x.safetensors", "--tv-wanted", "2"}, "--tv-wanted");
  fails({"x.safetensors", "--self-test", "5"}, "file: has no use with --self-test");
  fails({"--self-test", "0"}, "--self-test");
  fails({"--self-test="}, "--self-test is ''; expected a whole number behind =");
  for (const auto& [option, value] : {std::pair("--probs", "p.csv"),
                                      {"--outputs", "o.safetensors"},
                                      {"--figure", "f.svg"},
                                      {"--alpha", "0.02"},
                                      {"--tv-wanted", "0.1"},
                                      {"--verifier", "naive"},
                                      {"--ties", "exact_k"}})
    fails({"--self-test", "5", option, value}, std::string(option) + ": has no use with --self-test");
  fails({"--self-test", "5", "--no-row-check"}, "--no-row-check: has no use with --self-test");
  fails({"--profile", "quick"}, "--profile: has no use without --self-test");
  fails({"--self-test", "--profile", "quickly"}, "--profile is 'quickly'; expected quick or full or soak");
  fails({"--self-test", "--kind", "filter"}, "--kind: has no use without --profile");
  fails({"--self-test", "--fault", "sound"}, "--fault: has no use without --profile");
  fails({"--self-test", "--profile", "quick", "--seed", "1"}, "--seed: has no use with --profile");
  fails({"--self-test", "--profile", "quick", "--table", "t.csv"}, "--table: has no use with --profile");
  for (const auto& [option, value] : {std::pair("--verifier", "chain"),
                                      {"--filter-order", "joint"},
                                      {"--ties", "exact_k"},
                                      {"--draft-processed", "1"},
                                      {"--nan-policy", "error"}})
    fails({"x.csv", "--probs", "p.csv", option, value}, std::string(option) + ": has no use with --probs");
  fails({"x.csv", "--probs", "p.csv", "--no-row-check"}, "--no-row-check: has no use with --probs");
  fails({"x.csv"}, "--probs");
  fails({"/nowhere.safetensors"}, "/nowhere.safetensors");
  fails({"x.safetensors", "--verifier", "odd"}, "--verifier");
}

TEST_CASE("audit of recorded drafts says what it lacks") {
  check_refused({"audit", "run.jsonl"},
                {"--drafter: is not given; expected head:PATH and --model beside a recorded run, run.jsonl"});
  check_refused({"audit", "run.jsonl", "--drafter", "head:x"},
                {"--model: is not given; expected the target that head:x was trained for"});
  check_refused({"audit", "run.jsonl", "--drafter", "suffix", "--model", "x"},
                {"--drafter: is suffix; expected head:PATH"});
  check_refused({"audit", "samples.safetensors", "--model", "x"}, {"--model: has no use without --drafter"});
  check_refused({"audit", "run.jsonl", "--drafter", "head:x", "--model", "x", "--probs", "p"},
                {"--probs: has no use with --drafter"});
  check_refused({"audit", "run.jsonl", "--drafter", "head:x", "--model", "x", "--tolerance", "-1"},
                {"--tolerance is '-1'; expected a number in [0, 100]"});
}

TEST_CASE("a run of the shipped model and its head is consistent by f32's rows, and altered drafts are not") {
  const auto model = shipped_model_at_full_speed();
  if (!model) return;
  const TemporaryFolder folder;
  const std::string run = folder.file("run.jsonl");
  const std::string head = "head:" DRAFTPROOF_SOURCE_DIR "/experiments/heads/smollm2-eagle3/eagle3.gguf";
  const ProgramResult made = run_draftproof({"generate", "--model", *model, "--prompt", "The capital of France is",
                                             "--outputs", "2", "--max-tokens", "32", "--drafter", head, "--policy",
                                             "fixed:3", "-k", "3", "--record-drafts", run, "--json"});
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK(json::parse(made.out).at("files").at("drafts") == run);
  const auto audit = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"audit", run, "--model", *model, "--drafter", head};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_draftproof(arguments);
  };
  const ProgramResult sound = audit({"--json"});
  INFO(sound.err);
  CHECK(sound.exit_code == 0);
  const json document = json::parse(sound.out);
  CHECK(document.at("input").at("kind") == "drafts");
  CHECK(document.at("verdict") == "consistent");
  CHECK(document.at("family") == "eagle3");
  CHECK(document.at("agreement").at("drafts") > 80);
  CHECK(document.at("probabilities") == document.at("agreement").at("drafts"));
  CHECK(document.at("largest_margin") < 0.5);
  CHECK(document.at("faults").empty());

  // Third drafts that are no head's, of one request.
  std::string lines = read_whole_file(run);
  lines = lines.substr(0, lines.find('\n'));
  json request = json::parse(lines);
  for (json& step : request.at("steps")) {
    json& drafts = step.at("drafts");
    if (drafts.size() == 3 && step.at("accepted") < 2) drafts[2] = drafts[0];
    step.erase("draft_logprobs");
  }
  write_whole_file(run, request.dump() + "\n");
  const ProgramResult altered = audit({});
  INFO(altered.err);
  CHECK(altered.exit_code == 1);
  for (const char* part : {"first difference: ", ", depth 3: the draft is token ",
                           "verdict: different: ", "none of the known faults explains it",
                           "no request records prefill_chunks of several chunks", "one rejected draft stays"})
    CHECK_THAT(altered.out, Contains(part));
  request["steps"] = json::array();
  write_whole_file(run, request.dump() + "\n");
  CHECK(audit({}).exit_code == 4);
  write_whole_file(run, "{\"prompt_tokens\": [1, -1]}\n");
  check_refused(audit({}), {"run.jsonl, line 1: prompt_tokens[1] is -1; expected a whole number in [0, "});
}

TEST_CASE("the audits of planted faults import nothing from the current folder") {
  if (run_command({"python3", "--version"}).exit_code != 0) return;
  const TemporaryFolder folder;
  for (const char* const made : {"module/draftproof/planted", "here"})
    std::filesystem::create_directories(folder.file(made));
  write_whole_file(folder.file("module/draftproof/__init__.py"), "");
  write_whole_file(folder.file("module/draftproof/planted/__init__.py"), "");
  write_whole_file(
      folder.file("module/draftproof/planted/__main__.py"),
      "import argparse, json, sys\nprint(json.dumps({'argv': sys.argv[1:], 'isolated': sys.flags.isolated}))\n");
  for (const char* const module : {"draftproof", "argparse", "json", "os", "runpy", "site"})
    write_whole_file(folder.file(std::string("here/") + module + ".py"),
                     "open('" + folder.file("ran") + "', 'w').write(__file__)\n");
  for (const std::string more : {"", ":", ":."}) {
    const ProgramResult run =
        run_command({"sh", "-c", "cd \"$0\" && exec \"$1\" audit --self-test --profile quick --json",
                     folder.file("here"), DRAFTPROOF_PROGRAM},
                    {"PYTHONPATH=" + folder.file("module") + more, "DRAFTPROOF_PYTHON=python3"});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const auto document = nlohmann::json::parse(run.out);
    CHECK(document.at("argv").at(1) == "quick");
    CHECK(document.at("isolated") == 1);
    CHECK_FALSE(std::filesystem::exists(folder.file("ran")));
  }
}

TEST_CASE(
    "a server, and what its audit saved, are handed to the Python module as they are, and its exit code is the "
    "answer") {
  if (run_command({"python3", "--version"}).exit_code != 0) return;
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("module/draftproof/server"));
  write_whole_file(folder.file("module/draftproof/__init__.py"), "");
  write_whole_file(folder.file("module/draftproof/server/__init__.py"), "");
  write_whole_file(
      folder.file("module/draftproof/server/__main__.py"),
      "import json, os, sys\nprint(json.dumps({'argv': sys.argv[1:]}))\nsys.exit(int(os.environ['CODE']))\n");
  const std::vector<std::string> module{"PYTHONPATH=" + folder.file("module"), "DRAFTPROOF_PYTHON=python3"};
  for (const int code : {0, 1, 4}) {
    std::vector<std::string> environment = module;
    environment.push_back("CODE=" + std::to_string(code));
    const auto document = json_of({"audit", "http://127.0.0.1:1", "--only", "draws", "--time=3"}, code, environment);
    CHECK(document.at("argv") == json::array({"http://127.0.0.1:1", "--only", "draws", "--time=3", "--json"}));
    CHECK(document.contains("command"));
  }
  // Recognised by content: a saved run whatever its name is, but not another option's value, nor another engine's run.
  write_whole_file(folder.file("run"), "{\"draftproof_server\": \"http://127.0.0.1:1\"}\n");
  write_whole_file(folder.file("drafts.jsonl"), "{\"prompt_tokens\": [1]}\n");
  std::vector<std::string> environment = module;
  environment.emplace_back("CODE=0");
  const ProgramResult saved = run_draftproof({"audit", folder.file("run")}, environment);
  CHECK(saved.exit_code == 0);
  CHECK_THAT(saved.out, Contains(folder.file("run")));
  check_refused(run_draftproof({"audit", folder.file("drafts.jsonl")}, environment), {"--drafter: is not given"});
  check_refused(run_draftproof({"audit", "--outputs", folder.file("run")}, environment), {"file: is missing"});
  check_refused(run_draftproof({"audit", "127.0.0.1:1/v1", "--only", "draws"}, environment),
                {"file: there is no", "http://127.0.0.1:1/v1"});
  check_refused(run_draftproof({"audit", "--outputs", "127.0.0.1:1"}, environment), {"file: is missing"});
  environment.back() = "CODE=9";
  CHECK(run_draftproof({"audit", "https://localhost"}, environment).exit_code == 3);
}

TEST_CASE("without the Python module a server's audit says what is missing") {
  const TemporaryFolder folder;  // whose interpreter imports nothing
  write_whole_file(folder.file("python3"), "#!/bin/sh\nexit 1\n");
  std::filesystem::permissions(folder.file("python3"), std::filesystem::perms::owner_all);
  if (run_command({"/usr/bin/python3", "-I", "-c", "import draftproof.server"}).exit_code == 0) return;
  check_refused(
      run_draftproof({"audit", "http://127.0.0.1:1"}, {"DRAFTPROOF_PYTHON=" + folder.file("python3"),
                                                       "PYTHONPATH=", "PATH=" + folder.path() + ":/usr/bin:/bin"}),
      {"URL: servers are audited by the Python module", "install draftproof"});
}

}  // namespace
