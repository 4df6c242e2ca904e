// Panel "Speedup versus batch" by events: lessons, sliders, curves, files.
#include "viz/panels/speedup_by_batch.hpp"

#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

namespace draftproof::testing {
namespace {

using SpeedupDriver = PanelDriver<SpeedupByBatchPanel>;

bool has_curve(const SpeedupByBatchSnapshot& snapshot, const std::string& name) {
  return std::ranges::find(snapshot.curves, name, &SpeedupCurve::name) != snapshot.curves.end();
}

TEST_CASE("every lesson of the speedup panel can be chosen and is predicted") {
  const SpeedupDriver driver;
  REQUIRE(driver.panel().shown() != nullptr);
  CHECK(driver.shown().report.points->points.size() == 6);
  for (const SpeedupPreset& preset : speedup_presets()) {
    INFO(preset.name);
    if (preset.settings == driver.panel().settings()) continue;
    driver->choose("speedup_by_batch/lesson", preset.name);
    CHECK(driver.shown().settings == preset.settings);
    CHECK(driver.panel().state().error.empty());
  }
}

TEST_CASE("what-if sliders move the curves, and the command line says by how much") {
  const SpeedupDriver driver;
  const double before = driver.shown().curves.front().speedup.front();
  driver->type_into_slider("speedup_by_batch/draft cost x", "0.1");
  const double cheap = driver.shown().curves.front().speedup.front();
  CHECK(cheap > before);
  driver->type_into_slider("speedup_by_batch/accepted drafts x", "0.5");
  CHECK(driver.shown().curves.front().speedup.front() < cheap);
  const std::vector<std::string> command = driver.panel().command();
  CHECK(std::ranges::find(command, "--draft-cost-factor") != command.end());
  CHECK(std::ranges::find(command, "--acceptance-factor") != command.end());
  driver->drag_slider("speedup_by_batch/rate a", 1.0f);
  CHECK(driver.shown().settings.request.acceptance == "constant:0.99");
  driver->choose("speedup_by_batch/acceptance", "typical of the drafter");
  CHECK(driver.shown().settings.request.acceptance.empty());
  CHECK_FALSE(driver->has("speedup_by_batch/rate a"));
}

TEST_CASE("curves are added and taken away, guidance among them") {
  const SpeedupDriver driver;
  CHECK(has_curve(driver.shown(), "K = 5"));
  driver->click("speedup_by_batch/K=5");
  CHECK_FALSE(has_curve(driver.shown(), "K = 5"));
  driver->click("speedup_by_batch/K=2");
  CHECK(has_curve(driver.shown(), "K = 2"));
  driver->click("speedup_by_batch/compare guidance");
  CHECK(has_curve(driver.shown(), "with guidance"));
  driver->click("speedup_by_batch/guidance");
  CHECK(has_curve(driver.shown(), "without guidance"));
  driver->choose("speedup_by_batch/compare with", "Medusa");
  CHECK(has_curve(driver.shown(), "Medusa, best"));
  driver->choose("speedup_by_batch/model", "Llama-3.1-8B");
  driver->choose("speedup_by_batch/GPU", "L40S");
  CHECK_THAT(driver.shown().head, Contains("Llama-3.1-8B") && Contains("L40S"));
}

TEST_CASE("a model that does not fit its GPUs gives a message, and the curves stay") {
  const SpeedupDriver driver;
  driver->type_into_slider("speedup_by_batch/GPUs", "1");
  CHECK_THAT(driver.panel().state().error, Contains("--tp: is 1; expected at least"));
  CHECK(driver.shown().settings.request.tp == 8);
}

TEST_CASE("one batch draws, and so do windows small and scaled") {
  {
    const SpeedupDriver small(std::make_unique<SpeedupByBatchPanel>(), 2.0f, 900, 700);
    CHECK(small.panel().shown() != nullptr);
  }
  const SpeedupDriver driver;
  driver->type_into_slider("speedup_by_batch/batches to", "2");
  CHECK(driver.shown().curves.front().batch.size() == 2);
  driver->move_to({1200, 400});
  driver->frames(2);
  driver->type_into_slider("speedup_by_batch/batches to", "2048");
  CHECK(driver.shown().curves.front().batch.size() == curve_batches(2048).size());
}

TEST_CASE("measured points, predictions and experiments are opened, and broken files leave the panel as it was") {
  const TemporaryFolder folder;
  const SpeedupDriver driver;
  Dashboard& dashboard = driver->dashboard();
  const std::string csv = folder.file("mine.csv");
  write_whole_file(csv,
                   "source_id,hardware,target_model,draft_method,K,batch,tau,speedup,engine\n"
                   "me,H100,Llama-3.1-70B-Instruct,EAGLE-3,3,4,2.5,1.9,vLLM\n");
  dashboard.open(csv);
  driver->frames(3);
  CHECK(dashboard.message().empty());
  REQUIRE(driver.shown().report.points);
  CHECK(driver.shown().report.points->points.size() == 1);
  driver->click("speedup_by_batch/no points");
  CHECK_FALSE(driver.shown().report.points);

  const std::string prediction = folder.file("predict.json");
  write_whole_file(prediction, R"({"command": "draftproof predict --model Qwen3-8B --gpu L4 --drafter n-gram"})");
  dashboard.open(prediction);
  driver->frames(3);
  CHECK(driver.shown().settings.request.model == "Qwen3-8B");
  dashboard.open(DRAFTPROOF_SOURCE_DIR "/experiments/speedup_by_batch/experiment.toml");
  driver->frames(3);
  CHECK(driver.shown().settings.request.acceptance == "constant:0.78");

  write_whole_file(csv, "hardware,target_model,draft_method\nH100,x,y\n");
  const SpeedupByBatchSettings kept = driver.panel().settings();
  dashboard.open(csv);
  driver->frames(3);
  CHECK_THAT(dashboard.message() + driver.panel().state().error, Contains("mine.csv"));
  CHECK(driver.panel().settings().request.model == kept.request.model);
}

}  // namespace
}  // namespace draftproof::testing
