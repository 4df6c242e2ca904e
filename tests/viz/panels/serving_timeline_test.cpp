// Panel "Serving timeline" by events: scenarios, load, policies, the stretch of time, files, and many steps.
#include "viz/panels/serving_timeline.hpp"

#include <imgui.h>

#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

namespace draftproof::testing {
namespace {

ServingTimelineSettings small_load() {
  ServingTimelineSettings settings;
  settings.requests = 40;
  settings.loads = {8, 32};
  return settings;
}

struct ServingDriver : PanelDriver<ServingTimelinePanel> {
  explicit ServingDriver(ServingTimelineSettings settings = small_load(), float scale = 1.0f, int width_px = 1920,
                         int height_px = 1080)
      : PanelDriver(std::make_unique<ServingTimelinePanel>(std::move(settings)), scale, width_px, height_px) {}
};

TEST_CASE("the serving panel takes load, requests, policies and seed from its controls") {
  const ServingDriver driver;
  REQUIRE(driver.panel().shown() != nullptr);
  CHECK(driver.shown().loads.size() == 2);
  driver->choose("serving_timeline/below", "goodput");
  CHECK(driver.shown().lower()->policy == "goodput");
  driver->choose("serving_timeline/above", "k3");
  CHECK(driver.shown().upper()->policy == "k3");
  driver->type_into_slider("serving_timeline/load", "24");
  CHECK(driver.shown().scenario.workload.arrivals.rate == 24.0);
  driver->type_into_slider("serving_timeline/requests", "60");
  CHECK(driver.shown().lower()->requests.size() == 60);
  const std::uint64_t seed = driver.shown().scenario.seed;
  driver->click("serving_timeline/new seed");
  CHECK(driver.shown().scenario.seed == seed + 1);
  driver->type_into("serving_timeline/loads", "4,16,48");
  CHECK(driver.shown().loads.size() == 3);
  driver->type_into("serving_timeline/loads", "4,x");
  CHECK(driver.shown().loads.size() == 3);  // no numbers: as it was
  CHECK(driver.panel().state().error.empty());
}

TEST_CASE("the stretch of time that is seen is moved by buttons and by the mouse") {
  const ServingDriver driver;
  const ServingTimelinePanel& panel = driver.panel();
  CHECK(panel.to_s() - panel.from_s() == Approx(0.4));
  const double from = panel.from_s();
  driver->click("serving_timeline/later");
  CHECK(panel.from_s() == Approx(from + 0.32));
  driver->click("serving_timeline/earlier");
  CHECK(panel.from_s() == Approx(from));
  const ControlRect steps = driver->rect("serving_timeline/steps");
  driver->drag(steps.center(), {steps.center().x - 200, steps.center().y});
  CHECK(panel.from_s() > from);
  CHECK(panel.to_s() - panel.from_s() == Approx(0.4));
  driver->click("serving_timeline/whole run");
  CHECK(panel.from_s() == 0.0);
  CHECK(panel.to_s() == Approx(static_cast<double>(driver.shown().upper()->steps.end_ns()) * 1e-9));
  driver->move_to(steps.center());
  driver->frames(2);
  driver->click("serving_timeline/single steps");
  CHECK(panel.to_s() - panel.from_s() == Approx(0.4));
}

TEST_CASE("a static batch, one policy and one request draw without complaint, also small and scaled") {
  const TemporaryFolder folder;
  const auto scenario = [&](const std::string& mode, int requests) {
    ServingTimelineSettings settings;
    settings.scenario = folder.file(mode + std::to_string(requests) + ".toml");
    settings.requests = 0;
    settings.loads.clear();
    write_whole_file(
        settings.scenario,
        "[linear]\ntarget_ms = 6\n[workload]\nrequests = " + std::to_string(requests) +
            "\narrivals = { kind = \"closed\", concurrency = 1 }\nprompt = 10\noutput = 5\n[run]\nmode = \"" + mode +
            "\"\n[[policy]]\nname = \"off\"\nspeculation = \"off\"\n");
    return settings;
  };
  {
    const ServingDriver one(scenario("serving", 1), 2.0f, 1000, 800);
    REQUIRE(one.panel().shown() != nullptr);
    CHECK(one.shown().upper()->requests.size() == 1);
    CHECK(one.shown().lower() == nullptr);
  }
  const ServingDriver batch(scenario("static", 8));
  REQUIRE(batch.panel().shown() != nullptr);
  CHECK(batch.shown().upper() == nullptr);
}

TEST_CASE("a run of a hundred thousand steps is drawn with a bounded number of vertices") {
  ServingTimelineSettings settings;
  settings.scenario = DRAFTPROOF_SOURCE_DIR "/experiments/scenarios/chat.toml";
  settings.requests = 2'000;
  settings.load = 2;  // few at a time: many steps
  settings.loads.clear();
  const ServingDriver driver(settings);
  CHECK(driver.shown().upper()->steps.steps().size() + driver.shown().lower()->steps.steps().size() > 100'000);
  driver->click("serving_timeline/whole run");
  // A frame costs what it draws (`dash --measure-frames` prints its time): 800 boxes a lane and not a box a step.
  CHECK(ImGui::GetDrawData()->TotalVtxCount < 60'000);
}

TEST_CASE("scenarios, grids and results of sim are opened, and a broken one gives a message") {
  const TemporaryFolder folder;
  const ServingDriver driver;
  Dashboard& dashboard = driver->dashboard();
  dashboard.open(DRAFTPROOF_SOURCE_DIR "/experiments/scenarios/chat_load.toml");
  driver->frames(3);
  CHECK(driver.shown().loads.size() == 6);
  const std::string broken = folder.file("broken.toml");
  write_whole_file(broken, "[workload]\nrequests = \"many\"\n");
  dashboard.open(broken);
  driver->frames(3);
  CHECK_THAT(dashboard.message(), Contains("broken.toml:"));
  CHECK(driver.shown().loads.size() == 6);
  const std::string result = folder.file("result.json");
  write_whole_file(result, R"({"command": "draftproof sim x.toml --set workload.requests=50 --set workload.warmup=0",
                               "scenario": ")" DRAFTPROOF_SOURCE_DIR R"(/experiments/scenarios/chat.toml"})");
  dashboard.open(result);
  driver->frames(3);
  CHECK(dashboard.message().empty());
  CHECK(driver.shown().lower()->requests.size() == 50);
}

}  // namespace
}  // namespace draftproof::testing
