// The exactness panel by the mouse.
#include "viz/panels/exactness.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/viz/driver.hpp"

using namespace draftproof;
using draftproof::testing::Driver;

namespace {

ExactnessSettings small_proofs() {
  ExactnessSettings settings;
  settings.draft_len = 1;
  settings.instances = testing::kSanitized ? 1 : 2;
  return settings;
}

struct MatrixDriver {
  explicit MatrixDriver(int width_px = 1600, int height_px = 1000) : driver(panels(), options(), width_px, height_px) {}

  static std::vector<std::unique_ptr<Panel>> panels() {
    auto panel = std::make_unique<ExactnessPanel>();
    panel->set(small_proofs());
    std::vector<std::unique_ptr<Panel>> all;
    all.push_back(std::move(panel));
    return all;
  }
  static DashboardOptions options() {
    DashboardOptions options;
    options.only_panel = "exactness";
    return options;
  }
  ExactnessPanel& panel() { return driver.panel<ExactnessPanel>("exactness"); }

  Driver driver;
};

}  // namespace

TEST_CASE("a field that is clicked is explained, with the command that prints its row") {
  MatrixDriver matrix;
  CHECK(matrix.panel().shown()->complete);
  // At first sight a counterexample.
  REQUIRE(matrix.panel().selected_cell() != nullptr);
  CHECK(matrix.panel().selected_cell()->sentence.find("comes out with probability") != std::string::npos);
  matrix.driver.click("exactness/block/distribution");
  REQUIRE(matrix.panel().selected_cell() != nullptr);
  CHECK(matrix.panel().selected_row()->name == "block");
  CHECK(matrix.panel().selected_cell()->sentence.find("the target's as fractions") != std::string::npos);
  matrix.driver.click("exactness/copy this command");
  CHECK(std::string(ImGui::GetClipboardText()).find("draftproof prove --vocab 3") == 0);
  CHECK(std::string(ImGui::GetClipboardText()).find("--verifier block") != std::string::npos);
}

TEST_CASE("the sliders of the matrix change what is proved, and the other view shows the bugs") {
  MatrixDriver matrix;
  const std::int64_t paths_of_three_tokens = matrix.panel().shown()->proofs.front().paths;
  matrix.driver.type_into_slider("exactness/vocabulary V", "2");
  CHECK(matrix.panel().shown()->settings.vocab_size == 2);
  CHECK(matrix.panel().shown()->proofs.front().paths > 0);
  CHECK(matrix.panel().shown()->proofs.front().paths < paths_of_three_tokens);
  matrix.driver.choose("exactness/show", "bugs");
  CHECK(matrix.panel().shown()->settings.view == ExactnessView::bugs);
  CHECK(matrix.panel().selected_cell() == nullptr);
  CHECK(matrix.panel().shown()->bugs.killed() == std::ssize(matrix.panel().shown()->bugs.bugs));
  matrix.driver.click("exactness/B01/keys");
  REQUIRE(matrix.panel().selected_cell() != nullptr);
  CHECK(matrix.panel().selected_cell()->text == "caught");
}

TEST_CASE("a result of prove is opened, and a broken one leaves the matrix as it was") {
  MatrixDriver matrix(700, 500);
  const testing::TemporaryFolder folder;
  const nlohmann::ordered_json computed = [&] {
    nlohmann::ordered_json document = matrix.panel().snapshot();
    for (nlohmann::ordered_json& proof : document.at("proofs")) proof["ms"] = 1.0;
    document["version"] = "1";
    document["command"] = "draftproof prove --json";
    document["proofs"].erase(1);
    return document;
  }();
  const std::string path = folder.file("proofs.json");
  std::ofstream(path) << computed.dump();
  matrix.driver.dashboard().open(path);
  matrix.driver.frames(2);
  CHECK(matrix.driver.dashboard().message().empty());
  CHECK(matrix.panel().shown()->settings.file == path);
  const std::size_t shown = matrix.panel().shown()->proofs.size();
  CHECK(shown == proof_cases().size() - 1);
  const std::string broken = folder.file("broken.json");
  std::ofstream(broken) << R"({"version": "1", "command": "draftproof prove --json", "proofs": [{}]})";
  matrix.driver.dashboard().open(broken);
  matrix.driver.frames(2);
  CHECK(matrix.driver.dashboard().message().find("has no key \"verifier\"") != std::string::npos);
  CHECK(matrix.panel().shown()->proofs.size() == shown);
  matrix.driver.click("exactness/compute again");
  matrix.driver.frames(2);
  CHECK(matrix.panel().shown()->proofs.size() == proof_cases().size());
}

TEST_CASE("a matrix with one row or none is drawn without complaint") {
  MatrixDriver matrix;
  ExactnessSnapshot empty;
  empty.complete = true;
  fill_matrix(empty);
  matrix.panel().show(empty);
  matrix.driver.frames(2);
  CHECK(matrix.panel().shown()->matrix.rows.empty());
  ExactnessSnapshot one = empty;
  one.proofs.emplace_back();
  one.proofs.front().name = "alone";
  fill_matrix(one);
  matrix.panel().show(one);
  matrix.driver.frames(2);
  CHECK(matrix.panel().shown()->matrix.rows.size() == 1);
}
