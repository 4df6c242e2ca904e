#include "viz/app/run.hpp"

#include <imgui.h>
#include <algorithm>
#include <ctime>
#include <iterator>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"
#include "sim/toml.hpp"
#include "viz/app/png_picture.hpp"
#include "viz/app/ui_context.hpp"
#include "viz/app/window.hpp"
#include "viz/panels/all_panels.hpp"

namespace draftproof {
namespace {

// Frames until sizes, scroll bars and docked windows have found their places, and each side's first panel is in front.
constexpr int kSettlingFrames = 6;

// Name of a lesson, which may be given by its number in the course.
std::string lesson_named(const std::string& text) {
  const auto number = read_integer(text, 1, 99);
  if (!number) return text;
  const TomlValue course = read_toml(own_file("course") + "/course.toml");
  const auto& lessons = course.at("lesson").items();
  if (*number > std::ssize(lessons))
    throw usage_error("--lesson", "is " + in_quotes(text) + "; expected " +
                                      expected_text(IntegerRange{1, std::ssize(lessons)}) + ", or a lesson's name");
  return lessons[static_cast<std::size_t>(*number - 1)].at("name").text();
}

// The panel that has the lesson of the options is alone in it, with the lesson's settings. Usage error for a lesson
// that none has.
std::unique_ptr<Dashboard> dashboard_of(const RunOptions& options) {
  DashboardOptions of_dashboard = options.dashboard;
  std::vector<std::unique_ptr<Panel>> panels = all_panels();
  if (!options.lesson.empty()) {
    const std::string lesson = lesson_named(options.lesson);
    std::vector<std::string> known;
    for (const auto& panel : panels) {
      if (panel->begin_lesson(lesson)) of_dashboard.only_panel = panel->info().name;
      std::ranges::copy(panel->lesson_names(), std::back_inserter(known));
    }
    if (of_dashboard.only_panel.empty())
      throw usage_error("--lesson", in_quotes(options.lesson) + " is not one of " + joined(known, ", ") +
                                        did_you_mean(options.lesson, known));
  }
  return std::make_unique<Dashboard>(std::move(panels), of_dashboard);
}

void open_all(Dashboard& dashboard, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    dashboard.open(path);
    if (!dashboard.message().empty()) throw input_error("", dashboard.message());
  }
}

// The surface draws; the panels wait for what the controls ask.
template <class Surface>
void draw_settled(Surface& surface, Dashboard& dashboard) {
  for (int i = 0; i < kSettlingFrames; ++i) {
    surface.begin_frame();
    dashboard.draw();
    surface.end_frame();
    dashboard.settle();
  }
}

nlohmann::ordered_json snapshots(const Dashboard& dashboard, const std::string& only_panel) {
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
  for (const auto& panel : dashboard.panels()) {
    if (!only_panel.empty() && panel->info().name != only_panel) continue;
    const WorkerState state = panel->state();
    if (!state.error.empty()) throw input_error(panel->info().name, state.error);
    result[panel->info().name] = panel->snapshot();
  }
  return result;
}

double cpu_time_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

}  // namespace

void run_in_window(const RunOptions& options, const std::string& record_to) {
  const UiContext context(options.dashboard.ui);
  const auto owned = dashboard_of(options);  // a panel that is not there is said without a display, too
  Window window(options.width_px, options.height_px, Window::Visibility::shown);
  Dashboard& dashboard = *owned;
  if (options.scale_as_display) dashboard.set_scale(window.display_scale());
  Recording recording{options.width_px, options.height_px, dashboard.ui().scale, options.dashboard.only_panel, {}};
  std::vector<std::string> dropped = options.opened;
  window.on_drop([&](const std::string& path) { dropped.push_back(path); });
  while (!window.is_closing()) {
    window.begin_frame();
    RecordedFrame frame{static_cast<double>(ImGui::GetIO().DeltaTime), {}};
    if (!record_to.empty()) frame.events = events_of_frame();
    for (const std::string& path : dropped) {
      dashboard.open(path);
      frame.events.push_back({RecordedEvent::Kind::open, 0, 0, 0, false, path});
    }
    dropped.clear();
    if (!record_to.empty()) recording.frames.push_back(std::move(frame));
    dashboard.draw();
    window.end_frame();
  }
  if (!record_to.empty()) write_recording(record_to, recording);
}

nlohmann::ordered_json take_screenshot(const RunOptions& options, const std::string& path) {
  const UiContext context(options.dashboard.ui);
  const auto owned = dashboard_of(options);
  Window window(options.width_px, options.height_px, Window::Visibility::hidden);
  Dashboard& dashboard = *owned;
  open_all(dashboard, options.opened);
  draw_settled(window, dashboard);
  write_png(path, window.picture());
  return snapshots(dashboard, dashboard.only_panel());
}

std::vector<std::string> outdated_pictures(const RunOptions& options, const std::string& folder) {
  std::vector<std::string> outdated;
  for (const auto& panel : all_panels()) {
    const std::string name = panel->info().name;
    if (name == "speculate" || name == "heads") continue;
    const std::string path = folder + "/" + name + ".png";
    const Picture there = read_png(path);
    RunOptions of_panel = options;
    of_panel.dashboard.only_panel = name;
    of_panel.width_px = there.width_px;
    of_panel.height_px = there.height_px;
    const UiContext context(of_panel.dashboard.ui);
    Window window(of_panel.width_px, of_panel.height_px, Window::Visibility::hidden);
    const auto dashboard = dashboard_of(of_panel);
    draw_settled(window, *dashboard);
    if (!look_alike(there, window.picture())) outdated.push_back(path);
  }
  return outdated;
}

void write_pictures(const RunOptions& options, const std::string& folder) {
  std::vector<std::string> names{""};
  for (const auto& panel : all_panels()) names.emplace_back(panel->info().name);
  for (const std::string& name : names) {
    RunOptions of_panel = options;
    of_panel.dashboard.only_panel = name;
    if (name.empty()) of_panel.width_px = 1920, of_panel.height_px = 1080;
    take_screenshot(of_panel, folder + "/" + (name.empty() ? "dash" : name) + ".png");
  }
}

nlohmann::ordered_json snapshots_of(const RunOptions& options) {
  const UiContext context(options.dashboard.ui);
  NullSurface surface(options.width_px, options.height_px);
  const auto owned = dashboard_of(options);
  Dashboard& dashboard = *owned;
  open_all(dashboard, options.opened);
  draw_settled(surface, dashboard);
  return snapshots(dashboard, dashboard.only_panel());
}

nlohmann::ordered_json replay(const RunOptions& options, const Recording& recording) {
  DashboardOptions dashboard_options = options.dashboard;
  dashboard_options.ui.scale = static_cast<float>(recording.scale);
  dashboard_options.only_panel = recording.only_panel;
  const UiContext context(dashboard_options.ui);
  NullSurface surface(recording.width_px, recording.height_px);
  Dashboard dashboard(all_panels(), dashboard_options);
  for (const RecordedFrame& frame : recording.frames) {
    repeat_events(frame);
    for (const RecordedEvent& event : frame.events)
      if (event.kind == RecordedEvent::Kind::open) dashboard.open(event.path);
    surface.begin_frame();
    dashboard.draw();
    surface.end_frame();
    dashboard.settle();
  }
  return snapshots(dashboard, recording.only_panel);
}

FrameTimes measure_frames(const RunOptions& options, int frames) {
  DashboardOptions dashboard_options = options.dashboard;
  dashboard_options.side_by_side = true;
  const UiContext context(dashboard_options.ui);
  NullSurface surface(options.width_px, options.height_px);
  Dashboard dashboard(all_panels(), dashboard_options);
  open_all(dashboard, options.opened);
  draw_settled(surface, dashboard);
  std::vector<double> times;
  FrameTimes result;
  for (int i = 0; i < frames; ++i) {
    const double begin = cpu_time_ms();
    surface.begin_frame();
    dashboard.draw();
    surface.end_frame();
    times.push_back(cpu_time_ms() - begin);
    result.vertices = std::max(result.vertices, ImGui::GetDrawData()->TotalVtxCount);
  }
  std::sort(times.begin(), times.end());
  result.frames = frames;
  result.median_ms = times.at(times.size() / 2);
  result.slowest_ms = times.back();
  return result;
}

}  // namespace draftproof
