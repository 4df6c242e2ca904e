// Every derived number in the JSON of every command, recomputed from its parts (derived_numbers.hpp).
#include "tests/cli/derived_numbers.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "cli/bench/result.hpp"
#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/run_program.hpp"
#include "tests/support/sanitizers.hpp"

namespace draftproof::testing {
namespace {

ordered_json document_of(std::vector<std::string> arguments, int exit_code = 0) {
  arguments.emplace_back("--json");
  const ProgramResult run = run_draftproof(arguments, {"DRAFTPROOF_REQUIRE_GPU=0"});
  INFO(run.err);
  REQUIRE(run.exit_code == exit_code);
  return ordered_json::parse(run.out);
}

// Another number near by, or the other truth value.
ordered_json changed(const ordered_json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>() + 1;
  return value == 0.0 ? 1e-3 : value.get<double>() * 1.001;
}

// Right as it is, and wrong with any of its derived numbers changed.
void check(const ordered_json& document, const std::string& command) {
  const NumberRules& rules = number_rules(command);
  for (const std::string& wrong : wrong_numbers(document, rules)) {
    INFO(command << " --json: " << wrong);
    CHECK(wrong.empty());
  }
  const std::vector<std::string> derived = derived_numbers(document, rules);
  CHECK_FALSE(derived.empty());
  for (const std::string& pointer : derived) {
    INFO("planted in " << command << " --json at " << pointer);
    ordered_json planted = document;
    ordered_json& value = planted.at(ordered_json::json_pointer(pointer));
    value = changed(value);
    CHECK_FALSE(wrong_numbers(planted, rules).empty());
  }
}

// The rows of a CSV file as objects; an empty cell is null.
ordered_json rows_of_csv(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::string> keys;
  ordered_json rows = ordered_json::array();
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line + ",");
    std::vector<std::string> values;
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(cell);
    if (keys.empty()) {
      keys = values;
      continue;
    }
    REQUIRE(values.size() == keys.size());
    ordered_json row;
    for (std::size_t i = 0; i < keys.size(); ++i)
      row[keys[i]] = values[i].empty() ? ordered_json() : ordered_json::parse(values[i]);
    rows.push_back(row);
  }
  return rows;
}

std::string corpus_text() {
  const std::vector<std::string> words{"the ", "draft ", "target ", "of ", "a ", "token ", "is ", "that "};
  std::string text;
  for (std::size_t i = 0; i < 4000; ++i) text += words[i * (i + 3) / 5 % words.size()];
  return text;
}

TEST_CASE("the derived numbers of demo and verify follow from their parts") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("corpus"), corpus_text());
  ordered_json demo = document_of({"demo", "--corpus", folder.file("corpus"), "--out", folder.file("out"), "--prompt",
                                   "the ", "--tokens", "77", "--samples", "1000", "--continuations", "3"});
  demo["csv"] = rows_of_csv(read_whole_file(demo.at("files").at("acceptance_csv").get<std::string>()));
  CHECK(demo.at("csv").size() == 5);
  check(demo, "demo");
  check(document_of({"verify", demo.at("files").at("trace")}), "verify");
}

TEST_CASE("the derived numbers of audit follow from their parts") {
  check(document_of({"audit", "--self-test", "20"}), "self-test");
  const TemporaryFolder folder;
  const std::string script = std::string(DRAFTPROOF_SOURCE_DIR) + "/tests/reference/trace/make_audit_samples.py";
  if (run_command({"python3", script, folder.path(), "8000", "3000"}).exit_code != 0) {
    CHECK(run_command({"sh", "-c", "command -v python3"}).exit_code != 0);
    WARN("SKIPPED: python3 is not installed");
    return;
  }
  check(document_of({"audit", folder.file("steps_unbiased.safetensors"), "--tv-wanted", "0.5"}), "audit");
}

TEST_CASE("the derived numbers of the exactness lab follow from their parts") {
  check(document_of({"prove", "--instances", "1", "--vocab", "2", "-k", "2"}), "prove");
  if (!testing::kSanitized) check(document_of({"bugs"}), "bugs");  // run_bugs_test.cpp runs them there
  const std::string trials = std::to_string(testing::fewer_if_sanitized(200000));
  check(document_of({"soak", "--trials", trials, "--threads", "2"}), "soak");
}

TEST_CASE("the derived numbers of bench and regress follow from their parts") {
  ordered_json bench = document_of({"bench", "--quick", "--threads", "1,2", "--repeat", "2"});
  // No tiny run times a peer; the writer of its keys does not care.
  BenchResult with_peer;
  with_peer.name = "row_with_peer";
  with_peer.ms = 3.0;
  with_peer.pytorch_ms = 4.5;
  with_peer.llama_cpp_ms = 2.0;
  with_peer.mass_pass_ms = 2.0;
  with_peer.goal = BenchGoal{"ratio_to_pytorch", false, 1.5};
  bench.at("results").push_back(ordered_json::parse(to_json(with_peer).dump()));
  check(bench, "bench");
  check(document_of({"regress", "--filter", "tree_mask/"}), "regress");
}

TEST_CASE("the derived numbers of speculate follow from their parts") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("text"), corpus_text());
  write_whole_file(folder.file("prompts"), "{\"work\": \"code\", \"prompt\": \"the draft of a \"}\n");
  check(document_of({"speculate", "--model", "ngram:3:" + folder.file("text"), "--prompts", folder.file("prompts"),
                     "--drafters", "suffix,ngram:2", "-k", "3", "--max-tokens", "20", "--out", folder.file("out")}),
        "speculate");
}

TEST_CASE("a number that nobody wrote a rule for is named") {
  const ordered_json document{{"machine", {{"logical_cores", 2}}}, {"rows", ordered_json::array()}, {"share", 0.5}};
  const std::vector<std::string> wrong = wrong_numbers(document, {{"/machine/logical_cores", {}}});
  REQUIRE(wrong.size() == 1);
  CHECK_THAT(wrong[0], Catch::StartsWith("/share is 0.5 and has no rule"));
}

}  // namespace
}  // namespace draftproof::testing
