// The panel of heads by mouse, keys and opened files; assertions are on its snapshots.
#include "viz/panels/heads.hpp"

#include "tests/studies/heads/head_study_files.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

namespace draftproof::testing {
namespace {

const HeadStudyFiles& files() {
  static const HeadStudyFiles made;
  return made;
}

struct HeadsDriver : PanelDriver<HeadsPanel> {
  explicit HeadsDriver(const HeadsSettings& settings, float scale = 1.0f, int width_px = 1920, int height_px = 1080)
      : PanelDriver(panel_with<HeadsPanel>(settings), scale, width_px, height_px) {
    (*this)->frames(3);
  }
};

TEST_CASE("a step and a prompt are chosen from what was measured, and the command prints them") {
  const HeadsDriver driver(files().settings(files().eagle3));
  REQUIRE(driver.shown().prompts.size() == 3);
  const HeadsPrompt* const first = driver.shown().shown_prompt();
  driver->type_into_slider("heads/step", "5");
  driver->frame();
  CHECK(driver.shown().settings.shown_step == 5);
  // Measured results are shown, and nothing is computed again.
  CHECK(driver.shown().shown_prompt() == first);
  driver->click("heads/draft 4");
  driver->frame();
  CHECK(driver.shown().settings.shown_step == 4);
  driver->type_into_slider("heads/prompt", "3");
  driver->frame();
  CHECK(driver.shown().settings.shown_prompt == 3);
  CHECK(driver.shown().settings.shown_step == 1);
  CHECK(driver.shown().prompts.front().get() == first);
  ordered_json printed = without_envelope(printed_by(driver.panel().command()));
  printed["head"] = files().eagle3;
  CHECK(driver.panel().snapshot() == printed);
  driver->drag_slider("heads/slot", 1.0f);
  driver->click("heads/relative L2");
  driver->frames(2);
}

TEST_CASE("another head is typed in, and a wrong one leaves the snapshot and has its message") {
  const HeadsDriver driver(files().settings(files().eagle3));
  driver->type_into_slider("heads/step", "3");
  driver->type_into("heads/head", files().dspark);
  driver->frame();
  CHECK(driver.shown().family == "dflash");
  CHECK(driver.shown().settings.shown_step == 1);
  driver->frames(2);
  driver->type_into("heads/head", files().folder.file("nothing"));
  driver->frame();
  CHECK_THAT(driver.panel().state().error, Contains("nothing"));
  CHECK(driver.shown().family == "dflash");
  driver->type_into("heads/head", "head@4:" + files().eagle3);
  driver->type_into_slider("heads/K", "2");
  driver->frame();
  CHECK(driver.panel().state().error.empty());
  CHECK(driver.shown().family == "eagle3");
  CHECK(driver.shown().num_speculative_tokens == 2);
}

TEST_CASE("a GGUF file of a head is opened, and one of a model is not this panel's") {
  const HeadsDriver driver(files().settings(files().eagle3));
  const std::string path = files().folder.file("dropped.gguf");
  write_whole_file(path, eagle3_gguf().bytes());
  CHECK(driver.panel().open(open_result(path)));
  CHECK(driver.panel().settings().head == path);
  CHECK_FALSE(driver.panel().open(open_result(files().model)));
}

TEST_CASE("a narrow window, a head that drafts nothing to show and no head at all are drawn without complaint") {
  HeadsSettings settings = files().settings(files().eagle3);
  settings.max_tokens = 1;  // the token behind the prompt: no step has a draft
  {
    const HeadsDriver nothing(settings, 1.5f, 900, 600);
    CHECK(nothing.shown().shown_step() == nullptr);
    CHECK(nothing.shown().prompts.size() == 3);
  }
  settings.head.clear();
  const HeadsDriver none(settings);
  CHECK_FALSE(none.shown().note.empty());
}

}  // namespace
}  // namespace draftproof::testing
