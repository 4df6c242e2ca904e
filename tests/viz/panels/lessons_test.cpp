// Lessons: every panel has some, each can be begun, and those of the course are in the panels that it names.
#include "sim/toml.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"
#include "viz/app/run.hpp"
#include "viz/panels/all_panels.hpp"
#include "viz/panels/distribution_lab.hpp"

namespace draftproof::testing {
namespace {

TEST_CASE("every panel has lessons of names that no other has, and one of the course is where the course says") {
  std::map<std::string, std::string> panel_of;
  for (const auto& panel : all_panels()) {
    CHECK_FALSE(panel->lesson_names().empty());
    for (const std::string& name : panel->lesson_names()) {
      INFO(name);
      CHECK(panel_of.emplace(name, panel->info().name).second);
      CHECK(panel->begin_lesson(name));
    }
    CHECK_FALSE(panel->begin_lesson("no such lesson"));
  }
  const TomlValue course = read_toml(DRAFTPROOF_SOURCE_DIR "/docs/course/course.toml");
  for (const TomlValue& lesson : course.at("lesson").items()) {
    INFO(lesson.at("name").text());
    CHECK(panel_of[lesson.at("name").text()] == lesson.at("panel").text());
  }
}

TEST_CASE("a lesson that is chosen sets the panel, and what is changed then are own settings") {
  const PanelDriver<DistributionLabPanel> driver;
  driver->choose("distribution_lab/lesson", "rejection");
  CHECK(driver.shown().acceptance == Approx(0.7));
  CHECK(driver.shown().p.size() == 3);
  driver->type_into_slider("distribution_lab/temperature", "0.5");
  CHECK(driver.shown().acceptance == Approx(17.0 / 38.0).margin(1e-4));
}

TEST_CASE("dash --lesson shows the lesson's panel alone, and refuses a lesson that none has") {
  RunOptions options;
  options.lesson = "rejection";
  const auto panels = snapshots_of(options);
  REQUIRE(panels.size() == 1);
  CHECK(panels.at("distribution_lab").at("acceptance").get<double>() == Approx(0.7));
  options.lesson = "2";
  CHECK(snapshots_of(options).at("distribution_lab").at("acceptance").get<double>() == Approx(0.7));
  options.lesson = "9";
  CHECK_THROWS_WITH(snapshots_of(options), Contains("--lesson") && Contains("[1, 8]"));
  options.lesson = "rejectoin";
  CHECK_THROWS_WITH(snapshots_of(options), Contains("--lesson") && Contains("did you mean 'rejection'?"));
}

}  // namespace
}  // namespace draftproof::testing
