// Pictures of the dashboard as the program writes them, on whatever display there is.
#include "tests/support/test.hpp"
#include "viz/app/png_picture.hpp"
#include "viz/app/recording.hpp"
#include "viz/panels/all_panels.hpp"

namespace {

bool display_is_here() {
  if (std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr) return true;
  WARN("SKIPPED: there is no display; ./draftproof test starts one where Xvfb is installed");
  return false;
}

// Sanitizers report what the display's driver leaves behind when a program ends; that is not ours to free. The same
// panels are drawn without a driver, and with leaks looked for, by the other tests.
ProgramResult run_dash(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "dash");
  const char* const options = std::getenv("ASAN_OPTIONS");
  return run_draftproof(arguments, {std::string("ASAN_OPTIONS=detect_leaks=0:") + (options ? options : "")});
}

std::size_t num_colours(const Picture& picture) {
  std::set<std::uint32_t> colours;
  for (std::size_t i = 0; i + 2 < picture.rgb.size(); i += 3)
    colours.insert(std::uint32_t{picture.rgb[i]} << 16 | std::uint32_t{picture.rgb[i + 1]} << 8 | picture.rgb[i + 2]);
  return colours.size();
}

TEST_CASE("a picture of every panel has the size that was asked for, and something in it") {
  if (!display_is_here()) return;
  const TemporaryFolder folder;
  int drawn = 0;
  for (const auto& panel : all_panels()) {
    const std::string name = panel->info().name;
    // There the tests of panels draw them without a window; one shows that the window's own code does.
    if (kSanitized && name != "speedup_by_batch") continue;
    const std::string path = folder.file(name + ".png");
    INFO(name);
    const auto run = run_dash({"--panel", name, "--screenshot", path, "--size", "1280x800"});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const Picture picture = read_png(path);
    CHECK(picture.width_px == 1280);
    CHECK(picture.height_px == 800);
    CHECK(num_colours(picture) > 50);  // letters are smoothed: a window with text has hundreds
    ++drawn;
  }
  CHECK(drawn == (kSanitized ? 1 : std::ssize(all_panels())));
}

TEST_CASE("a picture of the whole dashboard is drawn at twice the size of text, in light colours") {
  if (kSanitized) {
    WARN("SKIPPED: under sanitizers one panel is drawn in a window, by the test above");
    return;
  }
  if (!display_is_here()) return;
  const TemporaryFolder folder;
  const std::string path = folder.file("all.png");
  const auto run = run_dash({"--screenshot", path, "--size", "2560x1600", "--scale", "2", "--theme", "light"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const Picture picture = read_png(path);
  CHECK(picture.width_px == 2560);
  CHECK(num_colours(picture) > 50);
}

TEST_CASE("two pictures look alike with other digits in them, and not with a curve elsewhere or another size") {
  const Picture grey{320, 200, std::vector<std::uint8_t>(3 * 320 * 200, 128)};
  Picture digits = grey;
  for (std::size_t i = 0; i < 60; ++i) digits.rgb[3 * (320 * 10 + i)] = 255;  // a line of a few letters
  CHECK(look_alike(grey, digits));
  Picture curve = grey;
  for (std::size_t y = 0; y < 200; ++y)
    for (std::size_t x = 96; x < 104; ++x) curve.rgb[3 * (320 * y + x)] = 255;
  CHECK_FALSE(look_alike(grey, curve));
  CHECK_FALSE(look_alike(grey, {200, 320, grey.rgb}));
}

TEST_CASE("the pictures of the documentation look as their panels do now, and one that does not is named") {
  if (kSanitized || !display_is_here()) return;
  const auto run = run_dash({"--compare-pictures", DRAFTPROOF_SOURCE_DIR "/docs/dash"});
  INFO(run.err << run.out << "draftproof dash --pictures docs/dash makes them again");
  CHECK(run.exit_code == 0);
  const TemporaryFolder folder;
  for (const auto& panel : all_panels()) {
    const std::string name = std::string(panel->info().name) + ".png";
    std::filesystem::copy_file(std::filesystem::path(DRAFTPROOF_SOURCE_DIR "/docs/dash") / name, folder.file(name));
  }
  Picture other = read_png(folder.file("serving_timeline.png"));
  std::fill(other.rgb.begin() + 3 * 1600 * 450, other.rgb.begin() + 3 * 1600 * 480, std::uint8_t{200});
  write_png(folder.file("serving_timeline.png"), other);
  const auto found = run_dash({"--compare-pictures", folder.path()});
  CHECK(found.exit_code == 1);
  CHECK_THAT(found.out, Contains("out of date: ") && Contains("serving_timeline.png"));
}

TEST_CASE("a file that cannot be shown is refused by name, and no picture is written") {
  if (!display_is_here()) return;
  const TemporaryFolder folder;
  write_whole_file(folder.file("broken.json"), "{");
  const auto run = run_dash({folder.file("broken.json"), "--screenshot", folder.file("picture.png")});
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("broken.json"));
  CHECK(folder.file_names().size() == 1);
}

TEST_CASE("a panel that is not there is refused before a display is asked for") {
  const auto run = run_draftproof({"dash", "--panel", "nosuch"}, {"DISPLAY=", "WAYLAND_DISPLAY="});
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("--panel: 'nosuch' is not one of "));
}

TEST_CASE("the snapshots alone have no use for what a picture looks like") {
  for (const auto& [option, value] :
       {std::pair("--theme", "light"), {"--size", "800x600"}, {"--scale", "2"}, {"--out", "folder"}}) {
    const auto run = run_dash({"--json", option, value});
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Contains(std::string(option) + ": has no use with --json"));
  }
}

TEST_CASE("frames that are measured, and a recording that is repeated, are drawn as --theme and --size say") {
  const TemporaryFolder folder;
  write_recording(folder.file("actions"), {640, 400, 1, "speedup_by_batch", {}});
  for (const auto& [option, value] :
       {std::pair("--measure-frames", std::string("2")), {"--replay", folder.file("actions")}}) {
    const auto run =
        run_dash({"--panel", "speedup_by_batch", "--json", option, value, "--theme", "light", "--size", "640x400"});
    INFO(option << ": " << run.err);
    REQUIRE(run.exit_code == 0);
    const auto document = nlohmann::json::parse(run.out);
    if (document.contains("frames"))
      CHECK(document.at("frames").at("count") == 2);
    else
      CHECK(document.at("panels").contains("speedup_by_batch"));
  }
}

}  // namespace
