// The tree explorer by mouse and keys; assertions are on its snapshots and on where its playback stands.
#include "viz/panels/tree_explorer.hpp"

#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

namespace {

struct ExplorerDriver : PanelDriver<TreeExplorerPanel> {
  explicit ExplorerDriver(const TreeExplorerSettings& settings = {}, int width_px = 1920, int height_px = 1080,
                          const std::string& out_folder = "")
      : PanelDriver(panel_with<TreeExplorerPanel>(settings), 1.0f, width_px, height_px, out_folder) {}
};

std::int64_t accepted_after(const TreeExplorerSnapshot& snapshot, std::int64_t step) {
  if (step == 0) return 0;
  return std::ranges::count(snapshot.walk[static_cast<std::size_t>(step - 1)].states, NodeState::accepted);
}

TEST_CASE("a tree is stepped forward and back, and the nodes that stand are those of the walk") {
  const ExplorerDriver driver;
  const TreeExplorerPanel& panel = driver.panel();
  REQUIRE(panel.shown() != nullptr);
  const TreeExplorerSnapshot& snapshot = *panel.shown();
  const auto length = static_cast<std::int64_t>(snapshot.walk.size());
  REQUIRE(length == 5);  // the default teaches: three accepted, one rejected, one drawn
  CHECK(panel.playback().step == length);
  CHECK(accepted_after(snapshot, length) == static_cast<std::int64_t>(snapshot.path.size()));
  driver->click("tree_explorer/|<");
  CHECK(panel.playback().step == 0);
  driver->click("tree_explorer/<");
  CHECK(panel.playback().step == 0);
  for (std::int64_t step = 1; step <= length; ++step) {
    driver->click("tree_explorer/>");
    CHECK(panel.playback().step == step);
    CHECK(accepted_after(snapshot, step) >= accepted_after(snapshot, step - 1));
  }
  driver->click("tree_explorer/>");
  CHECK(panel.playback().step == length);
  CHECK(driver->has("tree_explorer/emitted"));
  driver->click("tree_explorer/<");
  driver->click("tree_explorer/<");
  CHECK(panel.playback().step == length - 2);
  CHECK(accepted_after(snapshot, length - 2) == 3);
  driver->drag_slider("tree_explorer/decision", 0.0f);
  CHECK(panel.playback().step == 0);
  driver->click("tree_explorer/>|");
  CHECK(panel.playback().step == length);
  CHECK(panel.shown() == &snapshot);  // looking computes nothing
}

TEST_CASE("the walk plays by itself, and pauses") {
  const ExplorerDriver driver;
  const TreeExplorerPanel& panel = driver.panel();
  driver->click("tree_explorer/Play");
  CHECK(panel.playback().playing);
  CHECK(panel.playback().step == 0);
  driver->frames(2 * 48 + 10);  // 0.8 s are 48 frames
  CHECK(panel.playback().step == 2);
  driver->click("tree_explorer/Pause");
  driver->frames(100);
  CHECK(panel.playback().step == 2);
  driver->click("tree_explorer/Play");
  driver->frames(4 * 48);
  CHECK(panel.playback().step == 5);
  CHECK_FALSE(panel.playback().playing);
}

TEST_CASE("another builder brings a verifier that takes its drafts, and the tree follows") {
  const ExplorerDriver driver;
  const TreeExplorerPanel& panel = driver.panel();
  driver->choose("tree_explorer/builder", "static");
  CHECK(panel.shown()->settings.builder == "static");
  CHECK(panel.shown()->settings.verifier == "target_only");
  driver->choose("tree_explorer/verifier", "rrsw");
  CHECK(panel.shown()->settings.verifier == "rrsw");
  CHECK(panel.shown()->curves.size() == 7);  // five in closed form, the tree's and the chain's by drawing
  REQUIRE(panel.shown()->comparison);
  CHECK(panel.shown()->comparison->verifier == "rrsw");
  driver->choose("tree_explorer/builder", "eagle2");
  CHECK(panel.shown()->settings.builder == "eagle2");
  CHECK(panel.shown()->settings.verifier == "naive");
  driver->choose("tree_explorer/builder", "paths");
  CHECK(panel.shown()->settings.verifier == "greedy_multipath:paths=2");
  CHECK(panel.state().error.empty());
}

TEST_CASE("the node budget is moved, and the curves end where it stands") {
  const ExplorerDriver driver;
  const TreeExplorerPanel& panel = driver.panel();
  driver->type_into_slider("tree_explorer/nodes", "9");
  CHECK(panel.shown()->nodes.size() == 9);
  CHECK(panel.shown()->mask.size() == 100);
  for (const BudgetCurve& curve : panel.shown()->curves) CHECK(curve.points.back().nodes == 9);
  driver->drag_slider("tree_explorer/nodes", 0.0f);
  CHECK(panel.shown()->nodes.size() == 1);
  driver->drag_slider("tree_explorer/draft quality", 1.0f);
  CHECK(panel.shown()->settings.quality == 1.0);
  CHECK(panel.shown()->expected_by_draft == Approx(panel.shown()->expected_by_target));
}

TEST_CASE("what is shown is exported as rows and as a figure") {
  const TemporaryFolder folder;
  TreeExplorerSettings settings;
  settings.builder = "static";
  settings.verifier = "rrsw";
  const ExplorerDriver driver(settings, 1920, 1080, folder.path());
  driver->click("tree_explorer/csv");
  const std::string rows = read_whole_file(folder.path() + "/tree_explorer.csv");
  CHECK(std::ranges::count(rows, '\n') == 17);
  if (!gnuplot_is_here()) return;
  driver->click("tree_explorer/svg");
  CHECK(read_whole_file(folder.path() + "/tree_explorer.svg").find("static, rrsw") != std::string::npos);
}

TEST_CASE("trees of one node, of the most nodes and of a text are drawn without complaint, large and small") {
  for (const std::int32_t nodes : {1, kTreeNodesMax}) {
    TreeExplorerSettings settings;
    settings.nodes = nodes;
    settings.vocab_size = nodes == 1 ? 2 : 64;
    const ExplorerDriver driver(settings);
    CHECK(driver.shown().nodes.size() == static_cast<std::size_t>(nodes));
    driver->frames(3);
  }
  ExplorerDriver({}, 700, 400)->frames(3);
  const ExplorerDriver driver;
  driver->choose("tree_explorer/models", "real");
  REQUIRE(driver.panel().state().error.empty());
  CHECK(driver.shown().settings.model == "ngram:6");
  CHECK(driver.shown().settings.drafter == "ngram:3");
  driver->type_into("tree_explorer/prompt", "This License");
  CHECK(driver.shown().settings.prompt == "This License");
  CHECK(driver.shown().emitted.size() == driver.shown().path.size() + 1);
  driver->choose("tree_explorer/models", "synthetic");
  CHECK(driver.shown().settings.model == kSyntheticModel);
}

}  // namespace
