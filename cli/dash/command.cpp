// draftproof dash: the dashboard in a window, as a picture, or as numbers.
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "viz/app/run.hpp"

namespace draftproof {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string panel, lesson, screenshot, pictures, compare, record, replay, theme = "dark", out = "out/dash";
  std::string size = "1600x1000";
  std::optional<double> scale;
  int frames = 0;
  bool json = false;
};

constexpr IntegerRange kSize_px{64, 16384};

// The two numbers of "1920x1080".
void read_size(const std::string& text, RunOptions& options) {
  const std::size_t x = text.find('x');
  const auto side = [&](const std::string& digits) {
    const std::optional<std::int64_t> value = read_integer(digits, kSize_px.least, kSize_px.most);
    if (!value)
      throw usage_error("--size", "is " + in_quotes(text) + "; expected WIDTHxHEIGHT in pixels, each in [" +
                                      std::to_string(kSize_px.least) + ", " + std::to_string(kSize_px.most) +
                                      "], as 1920x1080");
    return static_cast<int>(*value);
  };
  options.width_px = side(text.substr(0, x));
  options.height_px = side(x == std::string::npos ? "" : text.substr(x + 1));
}

RunOptions options_of(const Arguments& arguments) {
  RunOptions options;
  options.dashboard.ui = {static_cast<float>(arguments.scale.value_or(1)), arguments.theme == "dark"};
  options.scale_as_display = !arguments.scale;
  options.dashboard.only_panel = arguments.panel;
  options.dashboard.out_folder = arguments.out;
  options.opened = arguments.files;
  options.lesson = arguments.lesson;
  read_size(arguments.size, options);
  return options;
}

void print_frames(const FrameTimes& times, const Arguments& arguments, Json& document) {
  document["frames"] = {{"count", times.frames},
                        {"median_ms", finite("median_ms", times.median_ms)},
                        {"slowest_ms", finite("slowest_ms", times.slowest_ms)},
                        {"vertices", times.vertices}};
  if (arguments.json) return;
  std::cout << "CPU time of a frame with every panel visible: median " << times.median_ms << " ms, slowest "
            << times.slowest_ms << " ms of " << times.frames << " frames, " << times.vertices << " vertices\n";
}

void run(const Arguments& arguments, ProgramContext& context) {
  const RunOptions options = options_of(arguments);
  Json document = json_document(context.arguments);
  if (!arguments.replay.empty()) {
    document["panels"] = replay(options, read_recording(arguments.replay));
  } else if (arguments.frames > 0) {
    print_frames(measure_frames(options, arguments.frames), arguments, document);
    if (!arguments.json) return;
  } else if (!arguments.pictures.empty()) {
    write_pictures(options, arguments.pictures);
    std::cout << "written to " << printable_line(arguments.pictures) << '\n';
    return;
  } else if (!arguments.compare.empty()) {
    const std::vector<std::string> outdated = outdated_pictures(options, arguments.compare);
    if (!outdated.empty()) context.exit_code = ExitCode::finding;
    document["outdated"] = outdated;
    if (!arguments.json) {
      for (const std::string& path : outdated) std::cout << "out of date: " << printable_line(path) << '\n';
      return;
    }
  } else if (!arguments.screenshot.empty()) {
    document["panels"] = take_screenshot(options, arguments.screenshot);
    if (!arguments.json) {
      std::cout << "written to " << printable_line(arguments.screenshot) << '\n';
      return;
    }
  } else if (arguments.json) {
    document["panels"] = snapshots_of(options);
  } else {
    return run_in_window(options, arguments.record);
  }
  print_json(document);
}

}  // namespace

void add_dash(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<Arguments>();
  options.files("files", arguments->files,
                "Results to open: of demo, predict, sim, regress, ...; or drop them on the window");
  options.text("--panel", arguments->panel, "Show this panel alone", "NAME");
  options.text("--lesson", arguments->lesson,
               "Show this lesson alone, in its panel: its name, or its number in the course (draftproof lesson)",
               "NAME");
  options.text("--screenshot", arguments->screenshot, "Write a picture (PNG) instead of opening a window", "FILE");
  options.text("--pictures", arguments->pictures, "Write a picture of each panel and of all, as in docs/dash",
               "FOLDER");
  options.text("--compare-pictures", arguments->compare,
               "Name the pictures there that look otherwise than their panels do now (exit code 1)", "FOLDER");
  options.text("--size", arguments->size, "Size of the window or picture, in pixels", "WIDTHxHEIGHT");
  options.number("--scale", arguments->scale, {0.5, 4.0},
                 "Size of text and controls; a window's is the display's unless it is given");
  options.choice("--theme", arguments->theme, {"dark", "light"}, "Colours");
  options.text("--out", arguments->out, "Folder of what is exported", "FOLDER");
  options.text("--record", arguments->record, "Write what is done in the window to this file, when it is closed",
               "FILE");
  options.text("--replay", arguments->replay, "Do again what was recorded, without a window, and print what it led to",
               "FILE");
  options.integer("--measure-frames", arguments->frames, {0, 100'000},
                  "Build this many frames of all panels, without drawing them, and print their CPU time");
  options.used_only({"--record"}, "without a window", [arguments] {
    return arguments->replay.empty() && arguments->frames == 0 && arguments->screenshot.empty() &&
           arguments->pictures.empty() && arguments->compare.empty() && !arguments->json;
  });
  options.used_only({"--panel", "--lesson", "--size", "--screenshot"}, "with --compare-pictures",
                    [arguments] { return arguments->compare.empty(); });
  options.used_only({"--panel", "--lesson", "--screenshot"}, "with --pictures",
                    [arguments] { return arguments->pictures.empty(); });
  options.used_only({"--theme", "--size", "--scale", "--out"}, "with --json, which draws nothing", [arguments] {
    return !arguments->json || !arguments->screenshot.empty() || !arguments->replay.empty() || arguments->frames > 0;
  });
  options.used_only({"--lesson"}, "with --panel, --record, --replay or --measure-frames", [arguments] {
    return arguments->panel.empty() && arguments->record.empty() && arguments->replay.empty() && arguments->frames == 0;
  });
  options.json(arguments->json);
  options.examples({"", "--panel distribution_lab", "--lesson rejection --screenshot rejection.png",
                    "result.json --screenshot result.png"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
