// Panel "Kernels" by events: cases, a fault that fails, what is explained, files.
#include "viz/panels/kernels.hpp"

#include "tests/support/built_faults.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

namespace draftproof::testing {
namespace {

using regress::Verdict;

KernelsSettings small() {
  KernelsSettings settings;
  settings.filter = "tree_mask/,kv_commit/";
  return settings;
}

struct KernelsDriver : PanelDriver<KernelsPanel> {
  explicit KernelsDriver(float scale = 1.0f, int width_px = 1920, int height_px = 1080)
      : PanelDriver(std::make_unique<KernelsPanel>(small()), scale, width_px, height_px) {}
};

TEST_CASE("the kernels panel runs the cases that are asked for, and explains the one that is clicked") {
  const KernelsDriver driver;
  REQUIRE(driver.panel().shown() != nullptr);
  CHECK(driver.shown().kernels.size() == 2);
  CHECK(driver.panel().selected().empty());
  driver->click("kernels/tree_mask");
  CHECK(driver.panel().selected() == "tree_mask/" + driver.shown().kernels[0].cells[0].name);
  driver->type_into("kernels/filter", "tree_mask/");
  CHECK(driver.shown().kernels.size() == 1);
  const std::uint64_t seed = driver.shown().settings.seed;
  driver->click("kernels/other order");
  CHECK(driver.shown().settings.seed == seed + 1);
  CHECK(driver.shown().kernels[0].different == 0);
  driver->type_into("kernels/filter", "tree_mask/no such case");
  CHECK_THAT(driver.panel().state().error, Contains("no case has 'tree_mask/no such case'"));
  CHECK(driver.shown().kernels.size() == 1);
}

TEST_CASE("a fault that is chosen fails before the eyes, and choosing none brings the sound kernels back") {
  if (!faults_are_built()) return;
  const KernelsDriver driver;
  const std::string id = kernel_faults().front();
  driver->choose("kernels/fault", id);
  CHECK(driver.shown().settings.fault == id);
  REQUIRE(driver.shown().kernels.size() == 1);
  CHECK(driver.shown().kernels[0].different > 0);
  driver->click("kernels/different");
  CHECK_THAT(driver.panel().selected(), Contains(driver.shown().kernels[0].kernel + "/"));
  driver->choose("kernels/fault", "none (sound)");
  CHECK(driver.shown().settings.fault.empty());
  CHECK(driver.shown().kernels.size() == 2);
}

TEST_CASE("results and times are opened, an empty and a one-row result draw, and broken ones give messages") {
  const TemporaryFolder folder;
  const KernelsDriver driver(2.0f, 1200, 900);
  Dashboard& dashboard = driver->dashboard();
  const auto open = [&](const std::string& name, const std::string& text) {
    write_whole_file(folder.file(name), text);
    dashboard.open(folder.file(name));
    driver->frames(3);
    return dashboard.message();
  };
  CHECK(open("empty.json", R"({"command": "draftproof regress", "rows": []})").empty());
  CHECK(driver.shown().report.results.empty());
  CHECK(open("one.json",
             R"({"command": "draftproof regress --filter x", "rows": [{"case": "sample/a/V3", "block_threads": 32,
      "verdict": "different", "digest": "0123456789abcdef", "seconds": 0.5, "finding": "tokens[2] is 0x7, ...",
      "difference": {"output": "tokens", "index": 2, "found": {"hex": "0x00000007", "decimal": "7"},
      "expected": {"hex": "0x00000002", "decimal": "2"}}}]})")
            .empty());
  REQUIRE(driver.shown().kernels.size() == 1);
  CHECK(driver.shown().report.results[0].difference->found.decimal == "7");
  CHECK_THAT(driver->lines(), Contains("0 runs equal 1 different 0 skipped"));
  CHECK(driver.panel().command()[2] == "--filter");
  CHECK_THAT(open("broken.json", R"({"command": "draftproof regress", "rows": [{}]})"), Contains("broken.json, row 0"));
  CHECK(driver.shown().kernels.size() == 1);
  CHECK(open("times.json", R"({"command": "draftproof bench --device cuda", "gpu": {"name": "a GPU"},
      "copy_bandwidth_bytes_per_s": 4e12, "results": [{"name": "sample", "what": "1024 rows", "floor_ms": 0.1,
      "ms_median": 0.2, "ms_best": 0.15, "goal_ms": null, "met": null}]})")
            .empty());
  REQUIRE(driver.shown().times);
  CHECK(driver.shown().times->rows[0].over_floor() == Approx(2.0));
  driver->click("kernels/run here");
  CHECK(driver.shown().kernels.size() == 2);
}

}  // namespace
}  // namespace draftproof::testing
