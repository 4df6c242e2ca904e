// Random calls: the kernels on the CPU executor, whatever their block size and the order of their threads, answer what
// the reference answers.
#include <regex>

#include "gpu/regress/cases.hpp"
#include "gpu/regress/random_calls.hpp"
#include "gpu/regress/regression.hpp"
#include "tests/support/test.hpp"

namespace draftproof::regress {

TEST_CASE("random calls have the same answer from kernels and reference", "[device_api]") {
  const std::int64_t count = fewer_if_sanitized(1000);
  const RegressionReport report = run_cases(random_calls(count, 0), {}, 1);
  CHECK(report.count(Verdict::equal) == count);
  for (const std::string& finding : report.findings()) {
    INFO(finding);
    CHECK(finding.empty());
  }
}

TEST_CASE("a random call is the same alone and among others, and says how to run it again", "[device_api]") {
  std::vector<RegressCase> alone = random_calls(1, 45);
  const std::vector<RegressCase> among = random_calls(3, 43);
  CHECK(alone[0].name == "logprobs/random_45");
  CHECK(among[2].name == alone[0].name);
  CHECK(run_case(alone[0], {})[0].digest == run_case(among[2], {})[0].digest);
  // An executor that writes something else.
  alone[0].run = [run = alone[0].run](CaseRun& r) {
    run(r);
    r.in_out("more", std::vector<std::int32_t>{r.settings().executor});
  };
  CHECK_THAT(run_case(alone[0], {})[0].finding,
             Catch::Matchers::EndsWith("draftproof regress --executor simt --random 1 --seed 45"));
}

TEST_CASE("random calls set every field of every argument struct of draftproof.h", "[device_api]") {
  const std::string header = read_whole_file(DRAFTPROOF_SOURCE_DIR "/gpu/draftproof.h");
  std::string calls;
  for (const char* file : {"random_calls.cpp", "random_shard_calls.cpp", "shard_protocol.cpp", "shard_inputs.cpp"})
    calls += read_whole_file(DRAFTPROOF_SOURCE_DIR "/gpu/regress/" + std::string(file));
  const std::regex a_struct("typedef struct \\{([^}]*)\\} draftproof_(\\w+);");
  const std::regex comment("/\\*[^*]*\\*+([^/*][^*]*\\*+)*/");
  const std::regex field("(\\w+);");
  int structs = 0;
  for (std::sregex_iterator s(header.begin(), header.end(), a_struct), last; s != last; ++s) {
    const std::string name = (*s)[2];
    // Settings belong to the run; rows, randomness and what shard_select keeps are made whole; verify_by_name has no
    // kernels.
    if (name == "shard_kept" || name == "shard_search") continue;
    if (name == "settings" || name == "rows" || name == "randomness" || name == "verify_by_name_arguments") continue;
    ++structs;
    const std::string body = std::regex_replace((*s)[1].str(), comment, "");
    for (std::sregex_iterator f(body.begin(), body.end(), field); f != last; ++f) {
      INFO(name << "." << (*f)[1]);
      const std::regex set("\\b[acps]\\." + (*f)[1].str() + "\\b");
      CHECK(std::regex_search(calls, set));
    }
  }
  CHECK(structs == 17);
}

TEST_CASE("every call but a tree mask has a case beyond 2^32 elements", "[device_api]") {
  const std::vector<RegressCase> cases = cases_named("beyond_2_32_elements");
  for (const std::string& call : operations_named("/")) {
    INFO(call);
    const bool has_one =
        std::any_of(cases.begin(), cases.end(), [&](const RegressCase& c) { return c.name.starts_with(call + "/"); });
    CHECK(has_one == (call != "tree_mask"));
  }
}

}  // namespace draftproof::regress
