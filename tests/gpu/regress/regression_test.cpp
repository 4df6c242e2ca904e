// The regression itself: does it see what it must see?
#include "gpu/regress/regression.hpp"

#include <atomic>

#include "gpu/regress/cases.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/regression_json.hpp"
#include "tests/support/test.hpp"

namespace draftproof::regress {
namespace {

template <class T>
Output output(const std::string& name, const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {name, sizeof(T), {bytes, bytes + values.size() * sizeof(T)}, element_kind<T>()};
}

// A case whose outputs depend on who runs it only as `wrong` says.
RegressCase planted(const std::function<void(std::int32_t* out, bool is_reference)>& wrong) {
  return {"planted",
          [wrong](CaseRun& run) {
            auto* const out = run.output<std::int32_t>("tokens", 4);
            for (int i = 0; i < 4; ++i) out[i] = i;
            wrong(out, run.settings().executor == DRAFTPROOF_REFERENCE);
          },
          {0}};
}

TEST_CASE("a report counts its cases by call, and a case that only the golden file names is a finding") {
  RegressionReport report;
  report.results = {{"mass_pass/a", 0, Verdict::equal, "", "1", 0.5, {}},
                    {"mass_pass/b", 0, Verdict::skipped, "no GPU", "", 0.25, {}},
                    {"sample/a", 0, Verdict::equal, "", "2", 1.0, {}}};
  CHECK_FALSE(report.is_finding());
  CHECK(report.count(Verdict::equal) == 2);
  CHECK(report.why_skipped() == "no GPU");
  REQUIRE(report.by_call().size() == 2);
  CHECK(report.by_call()[0].call == "mass_pass");
  CHECK(report.by_call()[0].skipped == 1);
  CHECK(report.by_call()[0].seconds == 0.75);
  CHECK(report.by_call()[1].equal == 1);

  std::vector<RegressCase> cases(3);
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].name = report.results[i].name;
  const Digests golden = {{"mass_pass/a", "1"}, {"sample/a", "3"}, {"sample/gone", "4"}};
  RegressionReport some = report;
  check_digests(some, cases, golden, false);
  CHECK(some.findings() == std::vector<std::string>{"sample/a: the outputs have digest 2, the golden file says 3"});
  check_digests(report, cases, golden, true);
  REQUIRE(report.findings().size() == 2);
  CHECK(report.findings()[1] == "sample/gone: the golden file names a case that is not there");
  CHECK(report.is_finding());
}

TEST_CASE("the cases of a report are run in their order, whatever thread takes them") {
  std::vector<RegressCase> cases;
  for (int i = 0; i < 8; ++i) {
    cases.push_back(planted([i](std::int32_t* out, bool is_reference) { out[0] += i == 5 && !is_reference ? 1 : 0; }));
    cases.back().name += "/" + std::to_string(i);
  }
  std::atomic<int> finished{0};
  const RegressionReport report = run_cases(cases, {}, 2, [&] { ++finished; });
  CHECK(finished == 8);
  REQUIRE(report.results.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(report.results[i].name == cases[i].name);
  REQUIRE(report.findings().size() == 1);
  CHECK_THAT(report.findings()[0], Contains("planted/5: tokens[0] is 0x00000001 (1)"));
}

TEST_CASE("the first difference is reported by output, index and both values in hexadecimal and decimal") {
  const std::vector<Output> expected = {output<std::int32_t>("tokens", {1, 2, 3}),
                                        output<float>("logprobs", {0.5f, 1.0f})};
  std::vector<Output> found = expected;
  CHECK(first_difference(expected, found).empty());
  found[1] = output<float>("logprobs", {0.5f, -1.0f});
  CHECK(first_difference(expected, found) == "logprobs[1] is 0xbf800000 (-1), the reference has 0x3f800000 (1)");
  CHECK(difference_of(expected, found)->found.decimal == "-1");
  found[0] = output<std::int32_t>("tokens", {1, 2});
  CHECK_THAT(first_difference(expected, found), Contains("tokens has another name or size"));
  // A NaN equals itself bit by bit and no other NaN.
  const std::vector<Output> quiet = {output<std::uint32_t>("x", {0x7fc00000u})};
  CHECK(first_difference(quiet, {output<std::uint32_t>("x", {0x7fc00000u})}).empty());
  CHECK_FALSE(first_difference(quiet, {output<std::uint32_t>("x", {0x7fc00001u})}).empty());
}

TEST_CASE("a digest depends on every byte, on names, on sizes and on the order of outputs") {
  const std::vector<Output> outputs = {output<std::int32_t>("a", {1, 2}), output<std::int32_t>("b", {3})};
  const std::string digest = digest_of(outputs);
  CHECK(digest.size() == 16);
  CHECK(digest == digest_of(outputs));
  CHECK(digest != digest_of({outputs[1], outputs[0]}));
  CHECK(digest != digest_of({output<std::int32_t>("a", {1, 3}), outputs[1]}));
  CHECK(digest != digest_of({output<std::int32_t>("c", {1, 2}), outputs[1]}));
  CHECK(digest != digest_of({output<std::int64_t>("a", {1 + (std::int64_t{2} << 32)}), outputs[1]}));
}

// Result of a case whose executor alone does `wrong`.
CaseResult result_of_wrong(const std::function<void(std::int32_t* out)>& wrong) {
  return run_case(planted([wrong](std::int32_t* out, bool is_reference) {
                    if (!is_reference) wrong(out);
                  }),
                  {})
      .front();
}

TEST_CASE("a case is equal, and a planted difference is a finding with the line that runs it again") {
  CHECK(result_of_wrong([](std::int32_t*) {}).verdict == Verdict::equal);
  const CaseResult wrong = result_of_wrong([](std::int32_t* out) { out[2] = 7; });
  CHECK(wrong.verdict == Verdict::different);
  CHECK_THAT(wrong.finding, Contains("tokens[2] is 0x00000007 (7), the reference has 0x00000002 (2)"));
  CHECK_THAT(wrong.finding, Contains("draftproof regress --executor simt --filter planted"));
}

TEST_CASE("an output that neither the reference nor the executor writes is a finding") {
  const RegressCase unwritten{"unwritten", [](CaseRun& run) { run.output<std::int32_t>("tokens", 4); }, {0}};
  CHECK(run_case(unwritten, {}).front().verdict == Verdict::different);
}

TEST_CASE("a write behind an array is a finding that names the array") {
  if (kSanitized) {
    WARN("SKIPPED: the address sanitizer ends a process that writes there");
    return;
  }
  const CaseResult wrong = result_of_wrong([](std::int32_t* out) { out[4] = 7; });
  CHECK(wrong.verdict == Verdict::different);
  CHECK_THAT(wrong.finding, Contains("tokens") && Contains("guard words"));
}

TEST_CASE("a digest that the golden file contradicts, or lacks, is a finding") {
  CaseResult result = result_of_wrong([](std::int32_t*) {});
  CaseResult right = result;
  check_digest(right, {{"planted", result.digest}});
  CHECK(right.verdict == Verdict::equal);
  CaseResult changed = result;
  check_digest(changed, {{"planted", "0123456789abcdef"}});
  CHECK(changed.verdict == Verdict::different);
  CHECK_THAT(changed.finding, Contains("0123456789abcdef") && Contains(result.digest));
  check_digest(result, {});
  CHECK_THAT(result.finding, Contains("--update"));
}

TEST_CASE("a golden file is read back as written, and a bad line is named") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.file("digests.txt");
  const Digests digests = {{"a/V7", "0123456789abcdef"}, {"b/V1", "fedcba9876543210"}};
  write_digests(file, digests);
  CHECK(read_digests(file) == digests);
  for (const char* bad : {"0123456789abcde a/V7", "0123456789abcdeg a/V7", "0123456789abcdef"}) {
    INFO(bad);
    std::ofstream(file) << "# digests\n" << bad << '\n';
    CHECK_THAT(error_of(ErrorKind::input, [&] { read_digests(file); }), Contains("line 2"));
  }
  std::ofstream(file) << "0123456789abcdef a\n0123456789abcdef a\n";
  CHECK_THAT(error_of(ErrorKind::input, [&] { read_digests(file); }), Contains("line 2") && Contains("already"));
  CHECK_THAT(error_of(ErrorKind::input, [&] { read_digests(folder.file("absent.txt")); }), Contains("--update"));
}

// One list of all cases: making it makes the inputs of many.
TEST_CASE("case names are unique, begin with their operation, and any part finds them", "[release]") {
  std::set<std::string> names;
  std::set<std::string> operations;
  for (const RegressCase& one : cases_named("/")) {
    INFO(one.name);
    CHECK(names.insert(one.name).second);
    CHECK(one.name.find('/') != std::string::npos);
    CHECK(one.name.find(' ') == std::string::npos);
    CHECK_FALSE(one.block_threads.empty());
    operations.insert(one.name.substr(0, one.name.find('/')));
  }
  CHECK(operations.contains("sample"));
  CHECK(operations.contains("mass_pass"));
  CHECK(operations.size() == operations_named("/").size());
}

TEST_CASE("a filter finds the cases of an operation alone, and one of several parts those of each, once") {
  const std::vector<RegressCase> masks = cases_named("tree_mask/");
  CHECK_FALSE(masks.empty());
  for (const RegressCase& one : masks) CHECK(one.name.starts_with("tree_mask/"));
  CHECK(cases_named("tree_mask/,guidance/").size() == masks.size() + cases_named("guidance/").size());
  CHECK(cases_named("tree_mask/,tree_mask/,tree_mask/no such case").size() == masks.size());
}

TEST_CASE("a report is read back from its JSON, and a row without its keys is named") {
  RegressionReport report;
  report.results = run_case(planted([](std::int32_t* out, bool reference) { out[1] = reference ? 1 : -3; }), {});
  report.results.push_back({"sample/a", 32, Verdict::skipped, "no GPU", "", 0.25, {}});
  const ordered_json document = to_json(report, "simt");
  const RegressionReport read = regression_of(document, "file");
  CHECK(to_json(read, "simt").at("rows") == document.at("rows"));
  REQUIRE(read.results[0].difference);
  CHECK(read.results[0].difference->found.hex == "0xfffffffd");
  CHECK(read.results[0].difference->found.decimal == "-3");
  ordered_json broken = document;
  broken.at("rows")[1].erase("verdict");
  CHECK_THAT(error_of(ErrorKind::input, [&] { regression_of(broken, "file"); }), Contains("file, row 1"));
  broken.at("rows")[1]["verdict"] = "fine";
  CHECK_THAT(error_of(ErrorKind::input, [&] { regression_of(broken, "file"); }), Contains("the verdict is 'fine'"));
}

// Here for the reference, which no checked pointer watches: the sanitizers do. The kernels are compared with it by the
// regression.
TEST_CASE("offsets that lie refuse some requests with status 9 and leave others served, in every call that has some") {
  for (const char* call :
       {"sample", "logprobs", "verify_chain", "verify_block", "verify_tree", "tree_mask", "kv_commit"}) {
    int cases = 0;
    for (const RegressCase& one : cases_named(std::string(call) + "/invalid_")) {
      draftproof_settings settings{};
      const std::unique_ptr<device::DeviceMemory> memory = device::memory_of(DRAFTPROOF_REFERENCE);
      CaseRun run(*memory, settings);
      one.run(run);
      INFO(one.name);
      std::set<std::int32_t> statuses;
      for (const Output& output : run.outputs()) {
        if (output.name != "status") continue;
        std::vector<std::int32_t> values(output.bytes.size() / sizeof(std::int32_t));
        std::memcpy(values.data(), output.bytes.data(), output.bytes.size());
        statuses.insert(values.begin(), values.end());
      }
      // Requests whose offsets survive several random errors may still be refused for their path.
      if (one.name.find("_random_") == std::string::npos) CHECK(statuses.count(DRAFTPROOF_ROW_OK) == 1);
      const bool is_looked_at = one.name.find("nobody_looks_at") == std::string::npos;
      CHECK(statuses.count(DRAFTPROOF_ROW_BAD_ID) == (is_looked_at ? 1 : 0));
      ++cases;
    }
    INFO(call);
    CHECK(cases >= 15);
  }
}

TEST_CASE("inputs are the same for the same seed, and padding holds what must not be read") {
  CHECK(probability_rows(5, 2, 9, 12, 2.0f).size() == 24);
  const std::vector<float> rows = normal_logits(5, 2, 9, 12, 2.0f);
  const std::vector<float> again = normal_logits(5, 2, 9, 12, 2.0f);
  CHECK(std::memcmp(rows.data(), again.data(), rows.size() * sizeof(float)) == 0);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t i = 0; i < 9; ++i) CHECK(std::abs(rows[row * 12 + i]) <= 12.0f);
    for (std::size_t i = 9; i < 12; ++i) CHECK_FALSE(std::abs(rows[row * 12 + i]) <= 12.0f);
  }
}

}  // namespace
}  // namespace draftproof::regress
