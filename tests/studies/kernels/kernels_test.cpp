#include "studies/kernels/kernels.hpp"

#include "studies/job.hpp"
#include "tests/support/built_faults.hpp"
#include "tests/support/test.hpp"

namespace {

using regress::Verdict;

KernelsSnapshot snapshot_of(const KernelsSettings& settings) {
  return last_snapshot<KernelsSnapshot>(settings);
}

// Without what differs between runs.
ordered_json without_times(ordered_json document) {
  document = without_envelope(std::move(document));
  document.erase("seconds");
  for (ordered_json& row : document.at("rows")) row.erase("seconds");
  return document;
}

ordered_json printed_by(const KernelsSettings& settings, int exit_code = 0) {
  return testing::printed_by(command_arguments(settings), exit_code);
}

constexpr const char* kTimes = R"({"gpu": {"name": "a GPU"}, "copy_bandwidth_bytes_per_s": 4.0e12, "results": [
  {"name": "sample", "what": "1024 rows", "floor_ms": 0.1, "ms_median": 0.25, "ms_best": 0.2, "goal_ms": 0.3,
   "met": true},
  {"name": "mass_pass", "what": "384 rows", "floor_ms": 0.02, "ms_median": 0.03, "ms_best": 0.03, "goal_ms": null,
   "met": null}]})";

}  // namespace

TEST_CASE("the kernels panel shows what its command prints, case by case") {
  KernelsSettings settings;
  settings.filter = "tree_mask/,kv_commit/,mass_pass/padded/f32/V33";
  const KernelsSnapshot snapshot = snapshot_of(settings);
  CHECK(without_times(to_json(snapshot)) == without_times(printed_by(settings)));
  REQUIRE(snapshot.kernels.size() == 3);
  CHECK(snapshot.kernels[0].kernel == "mass_pass");
  std::size_t results = 0;
  std::size_t cells = 0;
  for (const KernelRow& row : snapshot.kernels) {
    CHECK(row.different == 0);
    cells += row.cells.size();
    for (const KernelCell& cell : row.cells) {
      CHECK(cell.verdict == Verdict::equal);
      results += cell.results.size();
      for (const std::size_t i : cell.results) CHECK(snapshot.report.results[i].name == row.kernel + "/" + cell.name);
    }
  }
  CHECK(results == snapshot.report.results.size());
  CHECK(cells == snapshot.cases);
  CHECK(to_table(snapshot).rows.size() == results);
  PlottedRows bars;
  for (const KernelRow& row : snapshot.kernels)
    bars.push_back(
        {static_cast<double>(row.equal), static_cast<double>(row.different), static_cast<double>(row.skipped)});
  check_plotted(to_figure(snapshot), "kernels", bars);
}

TEST_CASE("the progress of a regression ends at the whole, of one operation and of several") {
  for (const char* const filter : {"tree_mask/", "tree_mask/,kv_commit/"}) {
    KernelsSettings settings;
    settings.filter = filter;
    Job job;
    compute(settings, job, [](auto&&...) {});
    CHECK(job.progress().fraction == Approx(1.0));
  }
}

TEST_CASE("the quick selection of the kernels panel has cases of every kernel") {
  const regress::Digests golden = regress::read_digests(DRAFTPROOF_SOURCE_DIR "/gpu/golden/digests.txt");
  std::set<std::string> kernels;
  const std::string list = KernelsSettings().filter;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string part = list.substr(begin, end - begin);
    INFO(part);
    CHECK(std::ranges::any_of(golden, [&](const auto& named) { return named.first.find(part) != std::string::npos; }));
    kernels.insert(part.substr(0, part.find('/')));
    begin = end + 1;
  }
  CHECK(kernels.size() == 9);
}

TEST_CASE("a chosen fault fails in the kernels panel, and the first differing bits are shown in hex and decimal") {
  if (!faults_are_built()) return;
  KernelsSettings settings;
  REQUIRE(kernel_faults().size() >= 20);
  settings.fault = "B08-first-seed";
  const KernelsSnapshot snapshot = snapshot_of(settings);
  CHECK(without_times(to_json(snapshot)) == without_times(printed_by(settings, 1)));
  REQUIRE(snapshot.kernels.size() == 1);
  CHECK(snapshot.kernels[0].kernel == "verify_chain");
  CHECK(snapshot.kernels[0].different > 0);
  const auto failed = std::ranges::find(snapshot.report.results, Verdict::different, &regress::CaseResult::verdict);
  REQUIRE(failed != snapshot.report.results.end());
  REQUIRE(failed->difference);
  CHECK_THAT(failed->finding, Contains(failed->difference->found.hex + " (" + failed->difference->found.decimal + ")"));
  settings.fault = "B99-none";
  CHECK_THAT(error_of(ErrorKind::usage, [&] { snapshot_of(settings); }), Contains("'B99-none' is not built"));
}

TEST_CASE("a regression that is opened is shown as it was written, and a broken one is refused") {
  const TemporaryFolder folder;
  KernelsSettings settings;
  settings.filter = "tree_mask/";
  const ordered_json printed = printed_by(settings);
  KernelsSettings opened;
  opened.opened = folder.file("regress.json");
  write_whole_file(opened.opened, printed.dump());
  const KernelsSnapshot snapshot = snapshot_of(opened);
  CHECK(to_json(snapshot).at("rows") == printed.at("rows"));
  CHECK(command_arguments(opened)[1] == "regress");
  write_whole_file(opened.opened, R"({"command": "draftproof regress", "rows": [{"case": 3}]})");
  CHECK_THAT(error_of(ErrorKind::input, [&] { snapshot_of(opened); }), Contains("row 0"));
  write_whole_file(opened.opened, "{}");
  CHECK_THAT(error_of(ErrorKind::input, [&] { snapshot_of(opened); }), Contains("is no document"));
  settings.filter = "tree_mask/no such case";
  CHECK_THAT(error_of(ErrorKind::usage, [&] { snapshot_of(settings); }), Contains("no case has 'tree_mask/no such"));
}

TEST_CASE("times of a GPU stand beside their floors, and a broken document is refused by its row") {
  const TemporaryFolder folder;
  KernelsSettings settings;
  settings.filter = "tree_mask/";
  settings.bench = folder.file("bench.json");
  write_whole_file(settings.bench, kTimes);
  const KernelsSnapshot snapshot = snapshot_of(settings);
  REQUIRE(snapshot.times);
  REQUIRE(snapshot.times->rows.size() == 2);
  CHECK(snapshot.times->rows[0].over_floor() == Approx(2.5));
  CHECK(snapshot.times->rows[0].met == true);
  CHECK_FALSE(snapshot.times->rows[1].met);
  CHECK_THAT(to_figure(snapshot), Contains("'floor'"));
  const auto refusal = [](const std::string& text) {
    return error_of(ErrorKind::input, [&] { kernel_times_of(ordered_json::parse(text), "b.json"); });
  };
  CHECK_THAT(refusal("{}"), Contains("b.json: is no document of `draftproof bench --device cuda --json`"));
  std::string text = kTimes;
  CHECK_THAT(refusal(text.replace(text.find("0.02"), 4, "0.00")), Contains("result 1: a time is not above 0"));
  text = kTimes;
  CHECK_THAT(refusal(text.replace(text.find("\"ms_best\": 0.2"), 9, "\"best\"")), Contains("result 0"));
}

TEST_CASE("the results that were brought from a GPU are read as they lie in gpu/results") {
  const std::string path = latest_gpu_result();
  REQUIRE_FALSE(path.empty());
  const ordered_json document = ordered_json::parse(std::ifstream(path));
  const KernelTimes times = kernel_times_of(document, path);
  CHECK(times.gpu == document.at("gpu"));
  CHECK(times.rows.size() == document.at("bench").at("results").size());
  CHECK(document.at("regression").at("different") == 0);
  CHECK(document.at("random").at("equal") == document.at("random").at("calls"));
}

TEST_CASE("a cancelled regression publishes nothing further") {
  Job job;
  KernelsSettings settings;
  settings.filter = "mass_pass/";
  int published = 0;
  CHECK_THROWS_AS(compute(settings, job,
                          [&](KernelsSnapshot) {
                            ++published;
                            job.cancel();
                          }),
                  Cancelled);
  CHECK(published <= 2);
}
