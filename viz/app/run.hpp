// The ways to run the dashboard: in a window, for one picture, through a recording, or against the clock.
#pragma once

#include <string>
#include <vector>

#include "viz/app/dashboard.hpp"
#include "viz/app/recording.hpp"

namespace draftproof {

struct RunOptions {
  DashboardOptions dashboard;
  bool scale_as_display = false;  // in a window: instead of dashboard.ui.scale
  int width_px = 1600, height_px = 1000;
  std::vector<std::string> opened;  // files and folders, in this order
  std::string lesson;               // that is begun, in its panel alone; empty: none
};

// Until the window is closed. `record_to`: where what happened is written at its end; empty: nowhere.
void run_in_window(const RunOptions& options, const std::string& record_to);

// Waits for the panels, and writes what they show to a PNG file. Input error naming the path, or the file opened that
// no panel shows. Returns the snapshots, as replay() does.
nlohmann::ordered_json take_screenshot(const RunOptions& options, const std::string& path);

// The pictures of the documentation: one of each panel, <folder>/<panel>.png, and dash.png of all.
void write_pictures(const RunOptions& options, const std::string& folder);
// The paths of those that look otherwise than their panel now. Speculate and Heads, and the dashboard with them, are
// not compared: they show times, and a model that need not be here. Input error naming a picture that is missing.
std::vector<std::string> outdated_pictures(const RunOptions& options, const std::string& folder);

// The snapshots, by panel, after the files were opened and all panels have settled. Needs no display.
nlohmann::ordered_json snapshots_of(const RunOptions& options);

// The snapshots at the end of a recording; `options` gives the theme and the folder of exports alone.
nlohmann::ordered_json replay(const RunOptions& options, const Recording& recording);

struct FrameTimes {
  int frames = 0;
  double median_ms = 0, slowest_ms = 0;  // CPU time of building a frame, without drawing it
  int vertices = 0;
};
// Every panel visible at once. Needs no display.
FrameTimes measure_frames(const RunOptions& options, int frames);

}  // namespace draftproof
