// The program as its users and their scripts meet it: exit codes, one line per error, help and JSON everywhere.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/run_program.hpp"

namespace {

using draftproof::testing::ProgramResult;
using draftproof::testing::run_draftproof;
using nlohmann::ordered_json;

// The names under "Subcommands:" in the program's own help, so that a new subcommand is tested without being named
// here.
std::vector<std::string> subcommands() {
  std::istringstream help(run_draftproof({"--help"}).out);
  std::vector<std::string> names;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (line == "Subcommands:") {
      listed = true;
    } else if (listed && line.rfind("  ", 0) == 0 && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    } else if (listed && line.empty()) {
      break;
    }
  }
  return names;
}

void check_one_clear_line(const ProgramResult& result, const std::string& must_name) {
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.rfind("draftproof: error: ", 0) == 0);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(result.err.back() == '\n');
  CHECK(result.err.find(must_name) != std::string::npos);
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

TEST_CASE("every subcommand has help that names its JSON flag") {
  REQUIRE_FALSE(subcommands().empty());
  for (const std::string& name : subcommands()) {
    INFO("draftproof " << name << " --help");
    const ProgramResult help = run_draftproof({name, "--help"});
    CHECK(help.exit_code == 0);
    CHECK(help.err.empty());
    CHECK(help.out.find("--json") != std::string::npos);
  }
}

TEST_CASE("an unknown option of any subcommand is one line and exit code 2") {
  for (const std::string& name : subcommands()) {
    INFO("draftproof " << name << " --no-such-option");
    check_one_clear_line(run_draftproof({name, "--no-such-option"}), "draftproof " + name + " --help");
  }
}

TEST_CASE("a missing or misspelt subcommand is one line and exit code 2") {
  check_one_clear_line(run_draftproof({}), "subcommand");
  check_one_clear_line(run_draftproof({"machin"}), "'machin'");
  check_one_clear_line(run_draftproof({"--no-such-option"}), "'--no-such-option'");
  check_one_clear_line(run_draftproof({"two\nlines"}), "'two lines'");
}

TEST_CASE("the version is one line that the JSON documents repeat") {
  const ProgramResult version = run_draftproof({"--version"});
  CHECK(version.exit_code == 0);
  const auto document = ordered_json::parse(run_draftproof({"machine", "--json"}).out);
  CHECK(version.out == document.at("version").get<std::string>() + "\n");
}

TEST_CASE("machine prints one JSON document with the envelope") {
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
  const auto page_bytes = std::stoll(draftproof::testing::run_command({"getconf", "PAGE_SIZE"}).out);
  const auto pages = std::stoll(draftproof::testing::run_command({"getconf", "_PHYS_PAGES"}).out);
  CHECK(machine.at("memory_bytes").get<long long>() == page_bytes * pages);
  CHECK(machine.at("gpu").is_null());
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

TEST_CASE("machine as text says what its JSON says") {
  const auto machine = ordered_json::parse(run_draftproof({"machine", "--json"}).out).at("machine");
  const ProgramResult text = run_draftproof({"machine"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find(std::to_string(machine.at("memory_bytes").get<long long>())) != std::string::npos);
  CHECK(text.out.find(machine.at("os").get<std::string>()) != std::string::npos);
}

TEST_CASE("odd values are refused by every command in one line that names the option and what was expected") {
  const std::vector<std::vector<std::string>> odd{{"prove", "--vocab", "1"},
                                                  {"prove", "--draft", "0"},
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
    INFO(arguments[0] << ": " << result.err);
    check_one_clear_line(result, "; expected ");
    if (arguments.size() > 2) CHECK(result.err.find(arguments[arguments.size() - 2] + " is '") != std::string::npos);
  }
}

TEST_CASE("an option that has no use beside the others is refused by name") {
  const std::vector<std::vector<std::string>> useless{{"bugs", "--json", "--markdown"}, {"tree", "--no-download"}};
  for (const std::vector<std::string>& arguments : useless) {
    const ProgramResult result = run_draftproof(arguments);
    INFO(arguments[0] << ": " << result.err);
    check_one_clear_line(result, arguments.back() + ": has no use with");
  }
}

TEST_CASE("a full disk behind standard output is an error and not a silent success") {
  for (const std::string arguments : {"machine --json", "machine", "--help"}) {
    INFO("draftproof " << arguments << " > /dev/full");
    const ProgramResult result =
        draftproof::testing::run_command({"sh", "-c", "exec \"$0\" " + arguments + " >/dev/full", DRAFTPROOF_PROGRAM});
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("standard output") != std::string::npos);
  }
}

}  // namespace
