// The exactness panel by the mouse.
#include "viz/panels/exactness.hpp"

#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

namespace {

ExactnessSettings small_proofs() {
  ExactnessSettings settings;
  settings.draft_len = 1;
  settings.instances = kSanitized ? 1 : 2;
  return settings;
}

struct MatrixDriver : PanelDriver<ExactnessPanel> {
  explicit MatrixDriver(int width_px = 1600, int height_px = 1000)
      : PanelDriver(panel_with<ExactnessPanel>(small_proofs()), 1.0f, width_px, height_px) {}
};

}  // namespace

TEST_CASE("a field that is clicked is explained, with the command that prints its row") {
  const MatrixDriver matrix;
  CHECK(matrix.shown().complete);
  // At first sight a counterexample.
  REQUIRE(matrix.panel().selected_cell() != nullptr);
  CHECK(matrix.panel().selected_cell()->sentence.find("comes out with probability") != std::string::npos);
  matrix->click("exactness/block/distribution");
  REQUIRE(matrix.panel().selected_cell() != nullptr);
  CHECK(matrix.panel().selected_row()->name == "block");
  CHECK(matrix.panel().selected_cell()->sentence.find("the target's as fractions") != std::string::npos);
  matrix->click("exactness/copy this command");
  CHECK(std::string(ImGui::GetClipboardText()).find("draftproof prove --vocab 3") == 0);
  CHECK(std::string(ImGui::GetClipboardText()).find("--verifier block") != std::string::npos);
}

TEST_CASE("the sliders of the matrix change what is proved, and the other view shows the bugs") {
  const MatrixDriver matrix;
  const std::int64_t paths_of_three_tokens = matrix.shown().proofs.front().paths;
  matrix->type_into_slider("exactness/vocabulary V", "2");
  CHECK(matrix.shown().settings.vocab_size == 2);
  CHECK(matrix.shown().proofs.front().paths > 0);
  CHECK(matrix.shown().proofs.front().paths < paths_of_three_tokens);
  matrix->choose("exactness/show", "bugs");
  CHECK(matrix.shown().settings.view == ExactnessView::bugs);
  CHECK(matrix.panel().selected_cell() == nullptr);
  CHECK(matrix.shown().bugs.killed() == std::ssize(matrix.shown().bugs.bugs));
  matrix->click("exactness/B01/reused keys");
  REQUIRE(matrix.panel().selected_cell() != nullptr);
  CHECK(matrix.panel().selected_cell()->text == "caught");
}

TEST_CASE("a result of prove is opened, and a broken one leaves the matrix as it was") {
  const MatrixDriver matrix(700, 500);
  const TemporaryFolder folder;
  const ordered_json computed = [&] {
    ordered_json document = matrix.panel().snapshot();
    for (ordered_json& proof : document.at("proofs")) proof["ms"] = 1.0;
    document["version"] = "1";
    document["command"] = "draftproof prove --json";
    document["proofs"].erase(1);
    return document;
  }();
  const std::string path = folder.file("proofs.json");
  std::ofstream(path) << computed.dump();
  matrix->dashboard().open(path);
  matrix->frames(2);
  CHECK(matrix->dashboard().message().empty());
  CHECK(matrix.shown().settings.file == path);
  const std::size_t shown = matrix.shown().proofs.size();
  CHECK(shown == proof_cases().size() - 1);
  const std::string broken = folder.file("broken.json");
  std::ofstream(broken) << R"({"version": "1", "command": "draftproof prove --json", "proofs": [{}]})";
  matrix->dashboard().open(broken);
  matrix->frames(2);
  CHECK(matrix->dashboard().message().find("has no key \"verifier\"") != std::string::npos);
  CHECK(matrix.shown().proofs.size() == shown);
  matrix->click("exactness/compute again");
  matrix->frames(2);
  CHECK(matrix.shown().proofs.size() == proof_cases().size());
}

TEST_CASE("a matrix with one row or none is drawn without complaint") {
  const MatrixDriver matrix;
  ExactnessSnapshot empty;
  empty.complete = true;
  fill_matrix(empty);
  matrix.panel().show(empty);
  matrix->frames(2);
  CHECK(matrix.shown().matrix.rows.empty());
  ExactnessSnapshot one = empty;
  one.proofs.emplace_back();
  one.proofs.front().name = "alone";
  fill_matrix(one);
  matrix.panel().show(one);
  matrix->frames(2);
  CHECK(matrix.shown().matrix.rows.size() == 1);
}
