// The panel of acceptance decay by mouse, keys and opened files; assertions are on its snapshots.
#include "viz/panels/acceptance_decay.hpp"

#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

namespace {

struct DecayDriver : PanelDriver<AcceptanceDecayPanel> {
  explicit DecayDriver(const std::vector<std::string>& sources, int width_px = 1920, int height_px = 1080,
                       const std::string& out_folder = "")
      : PanelDriver(std::make_unique<AcceptanceDecayPanel>(), 1.0f, width_px, height_px, out_folder) {
    AcceptanceDecaySettings settings;
    settings.sources = sources;
    panel().set(settings);
    (*this)->frame();
  }
};

const std::string kLog =
    "SpecDecoding metrics: Mean acceptance length: 2.15, Accepted: 1150 tokens, Drafted: 2000 tokens, Per-position "
    "acceptance rate: 0.700, 0.450\n";

TEST_CASE("a dearer draft makes the best draft shorter, down to none") {
  const DecayDriver driver({"constant:0.8"});
  const AcceptanceDecayPanel& panel = driver.panel();
  CHECK(panel.shown()->curves[0].best_k == 6);
  driver->type_into_slider("acceptance_decay/draft cost", "0.3");
  CHECK(panel.shown()->settings.draft_cost == 0.3);
  // (1 - 0.8^(K+1)) / (0.2 (1 + 0.3 K)) is largest at K = 2: 1.385, 1.525, 1.554 at 3.
  CHECK(panel.shown()->curves[0].best_k == 3);
  driver->drag_slider("acceptance_decay/draft cost", 1.0f);
  CHECK(panel.shown()->curves[0].best_k == 0);
  driver->drag_slider("acceptance_decay/draft cost", 0.0f);
  CHECK(panel.shown()->curves[0].best_k == 8);
  driver->type_into_slider("acceptance_decay/longest draft", "12");
  CHECK(panel.shown()->curves[0].best_k == 12);
  driver->click("acceptance_decay/conditional");
  driver->click("acceptance_decay/tokens per step");
  driver->frames(2);
}

TEST_CASE("sources are typed in and taken away, and a wrong one has its message") {
  const DecayDriver driver({"constant:0.8"});
  const AcceptanceDecayPanel& panel = driver.panel();
  driver->type_into("acceptance_decay/add", "drafter:MTP");
  REQUIRE(panel.shown()->curves.size() == 2);
  CHECK(panel.shown()->curves[1].format == "published rates");
  driver->type_into("acceptance_decay/add", "constant:7");
  REQUIRE(panel.shown()->curves.size() == 3);
  REQUIRE(panel.shown()->curves[2].error);
  CHECK_FALSE(panel.shown()->curves[1].error);
  driver->click("acceptance_decay/remove 3");
  driver->click("acceptance_decay/remove 1");
  REQUIRE(panel.shown()->curves.size() == 1);
  CHECK(panel.shown()->curves[0].source == "drafter:MTP");
  driver->click("acceptance_decay/remove 1");  // the last one stays
  CHECK(panel.shown()->curves.size() == 1);
}

TEST_CASE("an address holds the sources that are shown") {
  std::string address;
  {
    const DecayDriver driver({"constant:0.8", "drafter:MTP"});
    driver->type_into("acceptance_decay/add", "constant:0.5");
    driver->click("acceptance_decay/remove 1");
    address = driver->dashboard().address();
  }
  const DecayDriver other({"constant:0.8", "drafter:MTP"});
  other->dashboard().go_to(address);
  other->frames(3);
  CHECK(other.panel().shown()->settings.sources == std::vector<std::string>{"drafter:MTP", "constant:0.5"});
}

TEST_CASE("a server's log is opened, and what is broken or somebody else's changes nothing") {
  const TemporaryFolder folder;
  const DecayDriver driver({"constant:0.8"});
  const AcceptanceDecayPanel& panel = driver.panel();
  Dashboard& dashboard = driver->dashboard();
  write_whole_file(folder.file("server.log"), kLog);
  dashboard.open(folder.file("server.log"));
  driver->frames(2);
  CHECK(dashboard.message().empty());
  REQUIRE(panel.shown()->curves.size() == 2);
  CHECK(panel.shown()->curves[1].unconditional[1].value == Approx(0.45));
  CHECK(panel.shown()->curves[1].unconditional[1].low);
  const AcceptanceDecaySettings before = panel.settings();
  write_whole_file(folder.file("broken.log"),
                   "SpecDecoding metrics: Mean acceptance length: 2.15, Accepted: 1 tokens, Drafted: 2 tokens, "
                   "Per-position acceptance rate: 0.400, 0.900\n");
  dashboard.open(folder.file("broken.log"));
  CHECK_THAT(dashboard.message(), Contains("broken.log"));
  write_whole_file(folder.file("other.csv"), "apples,pears\n1,2\n");
  dashboard.open(folder.file("other.csv"));
  CHECK_THAT(dashboard.message(), Contains("no panel shows"));
  write_whole_file(folder.file("demo.json"), R"({"command": "draftproof demo", "acceptance_by_position": 3})");
  dashboard.open(folder.file("demo.json"));
  CHECK_THAT(dashboard.message(), Contains("acceptance_by_position"));
  write_whole_file(folder.file("sim.json"), R"({"command": "draftproof sim x.toml"})");
  dashboard.open(folder.file("sim.json"));
  CHECK_THAT(dashboard.message(), Contains("no panel shows"));
  driver->frame();
  CHECK(panel.settings() == before);
}

TEST_CASE("the curves that are shown are exported as rows and as a figure") {
  const TemporaryFolder folder;
  const DecayDriver driver({"constant:0.8", "drafter:MTP", "no such file"}, 1920, 1080, folder.path());
  driver->click("acceptance_decay/csv");
  const std::string rows = read_whole_file(folder.path() + "/acceptance_decay.csv");
  CHECK(std::ranges::count(rows, '\n') == 1 + 2 * 8);
  if (!gnuplot_is_here()) return;
  driver->click("acceptance_decay/svg");
  CHECK(read_whole_file(folder.path() + "/acceptance_decay.svg").find("drafter:MTP") != std::string::npos);
}

TEST_CASE("one position, the longest drafts and sources that all fail are drawn without complaint") {
  AcceptanceDecaySettings settings;
  settings.sources = {"positions:1,0.5", "constant:0"};
  for (const std::int32_t drafts : {1, kDecayDraftsMax}) {
    settings.drafts_max = drafts;
    const DecayDriver driver(std::vector<std::string>{});
    driver.panel().set(settings);
    driver->frames(3);
    CHECK(driver.shown().curves[0].unconditional.size() == static_cast<std::size_t>(drafts));
  }
  const DecayDriver driver({"no such file"}, 700, 400);
  driver->frames(3);
  CHECK(driver.shown().curves[0].error);
}

}  // namespace
