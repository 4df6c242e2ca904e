// Pictures of the dashboard as the program writes them, on whatever display there is.
#include <png.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/run_program.hpp"
#include "tests/support/sanitizers.hpp"
#include "viz/app/recording.hpp"
#include "viz/panels/all_panels.hpp"

namespace draftproof {
namespace {

bool display_is_here() {
  if (std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr) return true;
  WARN("SKIPPED: there is no display; ./draftproof test starts one where Xvfb is installed");
  return false;
}

// Sanitizers report what the display's driver leaves behind when a program ends; that is not ours to free. The same
// panels are drawn without a driver, and with leaks looked for, by the other tests.
testing::ProgramResult run_dash(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "dash");
  const char* const options = std::getenv("ASAN_OPTIONS");
  return testing::run_draftproof(arguments, {std::string("ASAN_OPTIONS=detect_leaks=0:") + (options ? options : "")});
}

struct Pixels {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;

  std::size_t num_colours() const {
    std::set<std::uint32_t> colours;
    for (std::size_t i = 0; i + 2 < rgb.size(); i += 3)
      colours.insert(std::uint32_t{rgb[i]} << 16 | std::uint32_t{rgb[i + 1]} << 8 | rgb[i + 2]);
    return colours.size();
  }
};

Pixels read_png(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
  image.format = PNG_FORMAT_RGB;
  Pixels pixels{static_cast<int>(image.width), static_cast<int>(image.height), {}};
  pixels.rgb.resize(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, pixels.rgb.data(), 0, nullptr) != 0);
  return pixels;
}

TEST_CASE("a picture of every panel has the size that was asked for, and something in it") {
  if (!display_is_here()) return;
  const testing::TemporaryFolder folder;
  int drawn = 0;
  for (const auto& panel : all_panels()) {
    const std::string name = panel->info().name;
    // There the tests of panels draw them without a window; one shows that the window's own code does.
    if (testing::kSanitized && name != "speedup_by_batch") continue;
    const std::string path = folder.file(name + ".png");
    INFO(name);
    const auto run = run_dash({"--panel", name, "--screenshot", path, "--size", "1280x800"});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const Pixels pixels = read_png(path);
    CHECK(pixels.width == 1280);
    CHECK(pixels.height == 800);
    CHECK(pixels.num_colours() > 50);  // letters are smoothed: a window with text has hundreds
    ++drawn;
  }
  CHECK(drawn == (testing::kSanitized ? 1 : std::ssize(all_panels())));
}

TEST_CASE("a picture of the whole dashboard is drawn at twice the size of text, in light colours") {
  if (testing::kSanitized) {
    WARN("SKIPPED: under sanitizers one panel is drawn in a window, by the test above");
    return;
  }
  if (!display_is_here()) return;
  const testing::TemporaryFolder folder;
  const std::string path = folder.file("all.png");
  const auto run = run_dash({"--screenshot", path, "--size", "2560x1600", "--scale", "2", "--theme", "light"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const Pixels pixels = read_png(path);
  CHECK(pixels.width == 2560);
  CHECK(pixels.num_colours() > 50);
}

TEST_CASE("a file that cannot be shown is refused by name, and no picture is written") {
  if (!display_is_here()) return;
  const testing::TemporaryFolder folder;
  testing::write_whole_file(folder.file("broken.json"), "{");
  const auto run = run_dash({folder.file("broken.json"), "--screenshot", folder.file("picture.png")});
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Catch::Contains("broken.json"));
  CHECK(folder.file_names().size() == 1);
}

TEST_CASE("the snapshots alone have no use for what a picture looks like") {
  for (const auto& [option, value] :
       {std::pair("--theme", "light"), {"--size", "800x600"}, {"--scale", "2"}, {"--out", "folder"}}) {
    const auto run = run_dash({"--json", option, value});
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Catch::Contains(std::string(option) + ": has no use with --json"));
  }
}

TEST_CASE("frames that are measured, and a recording that is repeated, are drawn as --theme and --size say") {
  const testing::TemporaryFolder folder;
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
}  // namespace draftproof
