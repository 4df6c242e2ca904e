// draftproof regress as its users meet it: the whole suite on the CPU executor, what a wrong golden file gives, skips.
#include "tests/support/built_faults.hpp"
#include "tests/support/test.hpp"

namespace {

ordered_json run_regress(std::vector<std::string> options, int exit_code,
                         const std::vector<std::string>& environment = {"DRAFTPROOF_REQUIRE_GPU=0"}) {
  options.insert(options.begin(), "regress");
  return json_of(options, exit_code, environment);
}

// Sanitizers slow the executor's fibres tenfold: there, every operation runs on its smallest cases.
std::vector<std::string> whole_suite() {
  if (kSanitized) return {"--filter", "/V33/"};
  return {};
}

}  // namespace

TEST_CASE("every kernel equals the reference bit for bit on the CPU executor, and the golden digests hold") {
  const ordered_json document = run_regress(whole_suite(), 0);
  CHECK(document.at("executor") == "simt");
  CHECK(document.at("different") == 0);
  CHECK(document.at("skipped") == 0);
  CHECK(document.at("equal").get<std::size_t>() == document.at("rows").size());
  CHECK(document.at("equal").get<int>() > 0);
}

TEST_CASE("another order of threads and blocks gives the same bits") {
  const ordered_json document = run_regress({"--filter", "/f32/V33/", "--seed", "977"}, 0);
  CHECK(document.at("different") == 0);
  CHECK(document.at("equal").get<int>() > 0);
}

TEST_CASE("a changed golden digest is a finding that names the case and both digests") {
  const TemporaryFolder folder;
  const std::string file = folder.file("digests.txt");
  std::ofstream(file) << "0123456789abcdef mass_pass/padded/f32/V33/B3\n";
  const ordered_json document = run_regress({"--filter", "mass_pass/padded/f32/V33/B3", "--golden", file}, 1);
  CHECK(document.at("different").get<std::size_t>() == document.at("rows").size());
  CHECK_THAT(document.at("rows").at(0).at("finding").get<std::string>(), Contains("0123456789abcdef"));
}

TEST_CASE("a fault's kernels are run where they are built, and their first differing bits are reported") {
  if (!faults_are_built()) return;
  const ordered_json document = run_regress({"--fault", "B08-first-seed"}, 1);
  CHECK(document.at("fault") == "B08-first-seed");
  CHECK(document.at("different") > 0);
  const auto& rows = document.at("rows");
  const auto failed =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.at("verdict") == "different"; });
  REQUIRE(failed != rows.end());
  CHECK(failed->at("case").get<std::string>().starts_with("verify_chain/seeds"));
  CHECK(failed->at("difference").at("found").at("hex") != failed->at("difference").at("expected").at("hex"));
  CHECK(failed->at("difference").at("found").at("decimal").is_string());
  check_refused({"regress", "--fault", "B99-none"}, {"--fault: the fault 'B99-none' is not built"});
  check_refused({"regress", "--fault", "B08-first-seed", "--filter", "x"}, {});
}

TEST_CASE("an update of the golden file with a filter is refused, since it holds every case") {
  const TemporaryFolder folder;
  const std::string file = folder.file("digests.txt");
  check_refused({"regress", "--update", "--filter", "V33", "--golden", file}, {"--filter"});
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a filter that names no case, or has an empty part, which every case has, is refused") {
  // Cases of one operation: no other makes its inputs.
  check_refused({"regress", "--filter", "kv_commit/no_such_case"}, {"no_such_case"});
  for (const std::string filter : {",", "mass_pass/,", ""})
    check_refused({"regress", "--filter", filter},
                  {"--filter: is '" + filter + "'; expected parts of names with a comma"});
}

TEST_CASE("options that a regression of this kind has no use for are refused") {
  const auto refused = [](std::vector<std::string> options, const std::string& sentence) {
    options.insert(options.begin(), "regress");
    check_refused(options, {sentence});
  };
  for (const auto& [option, value] :
       {std::pair("--filter", "sample/"), {"--golden", "digests.txt"}, {"--fault", "B08-first-seed"}})
    refused({"--random", "9", option, value}, std::string(option) + ": has no use with --random");
  refused({"--random", "9", "--update"}, "--update: has no use with --random");
  refused({"--random", "0"}, "--random");
  for (const char* option : {"--seed", "--threads"})
    refused({"--executor", "cuda", option, "1"}, std::string(option) + ": has no use with --executor cuda");
  refused({"--fault", "B08-first-seed", "--threads", "1"}, "--threads: has no use with --fault");
  refused({"--fault", "B08-first-seed", "--golden", "digests.txt"}, "--golden: has no use with --fault");
}

TEST_CASE("random calls take every operation in turns, from the seed on") {
  const ordered_json document = run_regress({"--random", "14", "--seed", "98"}, 0);
  CHECK(document.at("equal") == 14);
  CHECK(document.at("rows").at(0).at("case") == "mass_pass/random_98");
  CHECK(document.at("rows").at(13).at("case") == "shard_verify/random_111");
}

TEST_CASE("without a GPU the CUDA regression is skipped in plain sight, and fatal where a GPU was promised") {
  const ProgramResult probe = run_draftproof({"regress", "--executor", "cuda", "--filter", "mass_pass/"});
  if (probe.out.find("skipped:") == std::string::npos) {
    CHECK(probe.exit_code == 0);
    return;
  }
  CHECK(probe.exit_code == 4);  // never 0
  const ordered_json document = run_regress({"--executor", "cuda", "--filter", "mass_pass/"}, 4);
  CHECK(document.at("executor") == "cuda");
  CHECK(document.at("equal") == 0);
  CHECK(document.at("skipped").get<std::size_t>() == document.at("rows").size());
  CHECK_FALSE(document.at("rows").at(0).at("finding").get<std::string>().empty());
  const ProgramResult required =
      run_draftproof({"regress", "--executor", "cuda", "--filter", "mass_pass/"}, {"DRAFTPROOF_REQUIRE_GPU=1"});
  CHECK(required.exit_code == 2);
  CHECK_THAT(required.err, Contains("DRAFTPROOF_REQUIRE_GPU"));
}

TEST_CASE("bench --device cuda without a GPU says so in one line") {
  const ProgramResult run = run_draftproof({"bench", "--device", "cuda", "--quick"});
  if (run.exit_code == 0) return;  // there is one
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("--device cuda"));
}
