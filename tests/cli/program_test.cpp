// The program as its users and their scripts meet it: exit codes, one line per error, help and JSON everywhere.
#include "base/printable.hpp"
#include "tests/support/test.hpp"

namespace {

// The verbs that the program's own help lists, so that a new one is tested without being named here. `completion` is
// none: it prints a script and has no JSON.
std::vector<std::string> subcommands() {
  std::istringstream help(run_draftproof({"--help"}).out);
  std::vector<std::string> names;
  for (std::string line; std::getline(help, line);) {
    if (line.size() < 3 || !line.starts_with("  ") || line[2] < 'a' || line[2] > 'z') continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (name != "completion") names.push_back(name);
  }
  return names;
}

// The commands under "Examples:" in a verb's help, without the program's name.
std::vector<std::string> examples_in(const std::string& help) {
  std::istringstream lines(help);
  std::vector<std::string> commands;
  bool listed = false;
  const std::string start = "  draftproof ";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Examples:")) listed = true;
    if (listed && line.starts_with(start)) commands.push_back(line.substr(start.size()));
  }
  return commands;
}

TEST_CASE("the program's help lists its subcommands and exits with 0") {
  const ProgramResult help = run_draftproof({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  CHECK(help.out.find("Exit codes: 0") != std::string::npos);
  const auto names = subcommands();
  CHECK(std::find(names.begin(), names.end(), "machine") != names.end());
}

TEST_CASE("the usage line shows which arguments may be left out and which may be several") {
  CHECK(run_draftproof({"verify", "--help"}).out.find("verify [OPTIONS] trace\n") != std::string::npos);
  CHECK(run_draftproof({"acceptance", "--help"}).out.find("acceptance [OPTIONS] [source...]\n") != std::string::npos);
}

TEST_CASE("an unknown option of any subcommand is one line and exit code 2") {
  for (const std::string& name : subcommands()) {
    check_refused({name, "--no-such-option"}, {"draftproof " + name + " --help"});
  }
}

TEST_CASE("a missing or misspelt subcommand is one line and exit code 2") {
  const ProgramResult none = run_draftproof({});
  CHECK(none.exit_code == 2);
  CHECK(none.out.empty());
  CHECK(none.err.starts_with(run_draftproof({"--help"}).out));
  CHECK(none.err.find("\ndraftproof: error: a subcommand is required") != std::string::npos);
  check_refused({"machin"}, {"'machin'"});
  check_refused({"--no-such-option"}, {"'--no-such-option'"});
  check_refused({"two\nlines"}, {"'two lines'"});
}

TEST_CASE("a misspelt name of any kind is answered with the one that was perhaps meant") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> slips{
      {{"verifers"}, "verifiers"},
      {{"machine", "--jsn"}, "--json"},
      {{"demo", "--guidance-scale", "1.5"}, "--cfg-scale"},
      {{"speculate", "--k", "4"}, "--num-speculative-tokens"},
      {{"predict", "-k", "2"}, "--metrics-drafts"},
      {{"prove", "--draft", "2"}, "--num-speculative-tokens"},
      {{"acceptance", "--drafts", "2"}, "--num-speculative-tokens"},
      {{"lab", "--draft-tokens", "2"}, "--num-speculative-tokens"},
      {{"lab", "--verifier", "chian"}, "chain"},
      {{"lab", "--bug", "b38"}, "B38"},
      {{"bugs", "--only", "b38"}, "B38"},
      {{"prove", "--verifier", "blok"}, "block"},
      {{"generate", "--prompt", "x", "--drafter", "sufix"}, "suffix"},
      {{"demo", "--draft", "ngrm"}, "ngram"},
      {{"tree", "--builder", "sequoya"}, "sequoia"},
      {{"generate", "--prompt", "x", "--policy", "godput"}, "goodput"},
      {{"presets", "gpu"}, "gpus"}};
  for (const auto& [arguments, meant] : slips) check_refused(arguments, {"did you mean '" + meant + "'?"});
  check_refused({"machine", "-k"}, {"'-k' is not an option of machine (see"});  // of one letter every other is near
}

TEST_CASE("an unknown option is named alone, without what follows") {
  const ProgramResult result = run_draftproof({"lab", "--no-such-option", "12", "--seed", "4", "--nor-this"});
  check_refused(result, {"'--no-such-option' is not an option of lab"});
  CHECK(result.err.find("12") == std::string::npos);
  CHECK(result.err.find("--nor-this") == std::string::npos);
}

TEST_CASE("every verb's help names its JSON flag and ends with examples whose options and values the verb takes") {
  REQUIRE_FALSE(subcommands().empty());
  for (const std::string& verb : subcommands()) {
    INFO("draftproof " << verb << " --help");
    const ProgramResult result = run_draftproof({verb, "--help"});
    const std::string& help = result.out;
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    CHECK(help.find("--json") != std::string::npos);
    const std::vector<std::string> examples = examples_in(help);
    CHECK(examples.size() >= 2);
    for (const std::string& example : examples) {
      INFO(example);
      CHECK((example + " ").starts_with(verb + " "));
      std::vector<std::string> arguments = draftproof::shell_arguments(example);
      for (const std::string& word : arguments) {
        const std::string option = word.substr(0, word.find('='));
        // In the help an option stands at the start of its line or behind its short name.
        if (word.starts_with('-'))
          CHECK((help.find("\n  " + option + (option.size() == 2 ? "," : " ")) != std::string::npos ||
                 help.find("," + option + " ") != std::string::npos));
      }
      arguments.emplace_back("--help");  // values are read, and nothing runs
      const ProgramResult parsed = run_draftproof(arguments);
      CHECK(parsed.err.empty());
      CHECK(parsed.exit_code == 0);
    }
  }
}

TEST_CASE("values before --help are read, so that an example with a wrong one is found out") {
  CHECK(run_draftproof({"lab", "--top-k", "none", "--help"}).exit_code == 2);
}

TEST_CASE("the completion script completes verbs and a verb's options in bash") {
  const std::string script = run_draftproof({"completion", "bash"}).out;
  const auto completed = [&](const std::string& words) {
    const std::string test = script + "\nCOMP_WORDS=(draftproof " + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _draftproof; echo \"${COMPREPLY[*]}\"";
    const ProgramResult result = run_command({"bash", "-c", test});
    CHECK(result.err.empty());
    return result.out;
  };
  CHECK(completed("verif") == "verify verifiers\n");
  CHECK(completed("lab --num") == "--num-speculative-tokens\n");
  CHECK(completed("lab --see") == "--seed\n");
  CHECK(completed("completion ba") == "bash\n");
  CHECK(completed("nosuchverb --see") == "\n");
  check_refused({"completion", "fish"}, {"completion bash"});
}

TEST_CASE("start gives the one command for what there is, with examples for what was not answered") {
  const ordered_json document = json_of({"start"});
  CHECK(document.at("command").is_null());
  REQUIRE(document.at("paths").size() > 7);
  for (const ordered_json& path : document.at("paths")) {
    const auto name = path.at("name").get<std::string>();
    INFO(name);
    const ProgramResult listed = run_draftproof({"start"});
    CHECK_THAT(listed.out, Contains("\n  " + name + " "));
    // The command takes its own examples.
    const auto command = json_of({"start", name}).at("command").get<std::vector<std::string>>();
    for (const std::string& word : command) CHECK(word.find('%') == std::string::npos);
    if (command.front() != "draftproof") continue;
    std::vector<std::string> words(command.begin() + 1, command.end());
    words.emplace_back("--help");
    CHECK(run_draftproof(words).exit_code == 0);
  }
  const TemporaryFolder folder;
  const std::string log = folder.file("my log");
  check_refused({"start", "log", log, "A100"}, {"my log: is no file; expected a server's log"});
  write_whole_file(log, "");
  CHECK(run_draftproof({"start", "log", log, "A100"})
            .out.starts_with("draftproof predict '" + log + "' --gpu A100\nThen: draftproof read FILE "));
  CHECK_THAT(run_draftproof({"start", "log", log, "A100", "Qwen3-8B", "EAGLE-3"}).out,
             Contains("' --gpu A100 --model Qwen3-8B --drafter EAGLE-3\n"));
  check_refused({"start", "logs"},
                {"start: there is no path 'logs'; expected one of log, server, plan", "; did you mean 'log'?"});
  CHECK(run_draftproof({"start", "teach"}).out == run_draftproof({"start", "course"}).out);
  check_refused({"start", "server", "notaurl"},
                {"start: 'notaurl' is no address; expected one as http://127.0.0.1:8000"});
  CHECK(run_draftproof({"start", "server", "https://host:1"}).out.starts_with("draftproof audit https://host:1\n"));
  check_refused({"start", "course", "1"}, {"has 1 answers behind course; expected 0 at most"});
}

TEST_CASE("presets lists what the simulator knows, and predict takes those names") {
  const auto document = ordered_json::parse(run_draftproof({"presets", "--json"}).out);
  for (const char* kind : {"gpus", "models", "engines", "drafters"}) {
    INFO(kind);
    REQUIRE_FALSE(document.at(kind).empty());
    const auto one = ordered_json::parse(run_draftproof({"presets", kind, "--json"}).out);
    CHECK(one.at(kind) == document.at(kind));
    const std::string text = run_draftproof({"presets", kind}).out;
    for (const auto& row : document.at(kind)) CHECK(text.find(row.at("name").get<std::string>()) != std::string::npos);
  }
  CHECK_FALSE(ordered_json::parse(run_draftproof({"presets", "gpus", "--json"}).out).contains("models"));
  const auto name = [&](const char* kind) { return document.at(kind)[0].at("name").get<std::string>(); };
  const ProgramResult predicted =
      run_draftproof({"predict", "--model", name("models"), "--gpu", name("gpus"), "--engine", name("engines"),
                      "--drafter", "EAGLE-3", "--acceptance", "constant:0.7", "--json"});
  INFO(predicted.err);
  CHECK(predicted.exit_code == 0);
}

TEST_CASE("the version is one line that the JSON documents repeat") {
  const ProgramResult version = run_draftproof({"--version"});
  CHECK(version.exit_code == 0);
  const auto document = ordered_json::parse(run_draftproof({"machine", "--json"}).out);
  const auto commit = document.at("commit").get<std::string>();
  CHECK(version.out == document.at("version").get<std::string>() + " (" + commit + ")\n");
  const ProgramResult described =
      run_command({"git", "-C", DRAFTPROOF_SOURCE_DIR, "describe", "--always", "--abbrev=12", "--exclude=*"});
  if (described.exit_code == 0)
    CHECK(commit.size() >= 12);
  else
    CHECK(commit == "unknown");
}

TEST_CASE("machine prints one JSON document with the envelope, and as text what it says") {
  const ProgramResult result = run_draftproof({"machine", "--json"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  const auto document = ordered_json::parse(result.out);
  CHECK(document.at("command") == "draftproof machine --json");
  const auto& machine = document.at("machine");
  for (const char* key : {"cpu", "architecture", "logical_cores", "memory_bytes", "os", "compiler", "simd", "gpu"}) {
    INFO(key);
    CHECK(machine.contains(key));
  }
  CHECK(machine.at("logical_cores").get<int>() >= 1);
  // Another program's word for it.
  const auto page_bytes = std::stoll(run_command({"getconf", "PAGE_SIZE"}).out);
  const auto pages = std::stoll(run_command({"getconf", "_PHYS_PAGES"}).out);
  CHECK(machine.at("memory_bytes").get<long long>() == page_bytes * pages);
  CHECK(machine.at("gpu").is_null());
  const std::string text = run_draftproof({"machine"}).out;
  CHECK(text.find(std::to_string(machine.at("memory_bytes").get<long long>())) != std::string::npos);
  CHECK(text.find(machine.at("os").get<std::string>()) != std::string::npos);
  const auto& available = document.at("simd_available");
  CHECK(std::find(available.begin(), available.end(), machine.at("simd")) != available.end());
}

TEST_CASE("machine names the kernels of models, with the int8 instructions that the processor has") {
  const auto document = ordered_json::parse(run_draftproof({"machine", "--json"}).out);
  const auto& available = document.at("model_simd_available");
  CHECK(available.at("scalar") == "scalar");
  CHECK(available.contains(document.at("model_simd").get<std::string>()));
  // Linux's word for it.
  std::ifstream file("/proc/cpuinfo");
  const std::string cpu{std::istreambuf_iterator<char>(file), {}};
  const auto cpu_has = [&](const std::string& flag) { return cpu.find(" " + flag + " ") != std::string::npos; };
  const bool has_avx2 = cpu_has("avx2") && cpu_has("fma") && cpu_has("f16c");
  CHECK(available.contains("AVX2") == has_avx2);
  if (has_avx2) CHECK(available.at("AVX2") == "AVX2");
  CHECK(available.contains("AVX2_VNNI") == (has_avx2 && cpu_has("avx_vnni")));
  if (available.contains("AVX2_VNNI")) CHECK(available.at("AVX2_VNNI") == "AVX-VNNI");
  if (available.contains("AVX3")) CHECK(available.at("AVX3") == (cpu_has("avx512_vnni") ? "AVX-512 VNNI" : "AVX2"));
  const std::string text = run_draftproof({"machine"}).out;
  for (const auto& [set, instructions] : available.items())
    CHECK(text.find(set + " (" + instructions.get<std::string>() + ")") != std::string::npos);
}

TEST_CASE("odd values are refused by every command in one line that names the option and what was expected") {
  const std::vector<std::vector<std::string>> odd{{"prove", "--vocab", "1"},
                                                  {"prove", "--num-speculative-tokens", "0"},
                                                  {"prove", "--seed", "-1"},
                                                  {"prove", "--instances", "010"},
                                                  {"soak", "--seed", "18446744073709551616"},
                                                  {"soak", "--alpha", "nan"},
                                                  {"soak", "--trials", "010"},
                                                  {"soak", "--trials", "99999999999999999999"},
                                                  {"soak", "--models", ""},
                                                  {"bugs", "--only", ""},
                                                  {"demo", "--temperature", ""},
                                                  {"demo", "--seed", ""},
                                                  {"demo", "--out", ""},
                                                  {"demo", "--top-p", "1e-50"},
                                                  {"verify", "trace", "--compare", ""},
                                                  {"verify", "trace", "--drafted-top-k", "-1"},
                                                  {"verify", ""},
                                                  {"audit", "file", "--alpha", "1"},
                                                  {"audit", "--self-test", "99999999999999999999"},
                                                  {"bench", "--threads", "1,"},
                                                  {"regress", "--seed", "0x1"},
                                                  {"regress", "--golden", ""}};
  for (const std::vector<std::string>& arguments : odd) {
    const ProgramResult result = run_draftproof(arguments);
    check_refused(result, {"; expected "});
    if (arguments.size() < 3) continue;
    const std::string& option = arguments[arguments.size() - 2];
    const bool names_element = result.err.find(option + ": number ") != std::string::npos;  // of a list
    CHECK((names_element || result.err.find(option + " is '") != std::string::npos));
  }
}

TEST_CASE("an option that has no use beside the others is refused by name") {
  check_refused({"tree", "--no-download"}, {"--no-download: has no use with"});
}

TEST_CASE("a full disk behind standard output is an error and not a silent success") {
  for (const std::string arguments : {"machine --json", "machine", "--help"}) {
    INFO("draftproof " << arguments << " > /dev/full");
    const ProgramResult result =
        run_command({"sh", "-c", "exec \"$0\" " + arguments + " >/dev/full", DRAFTPROOF_PROGRAM});
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("standard output") != std::string::npos);
  }
}

}  // namespace
