// Moves the mouse and presses keys in a dashboard that nobody sees: events go in through ImGuiIO, as a window's do, and
// tests look at the snapshots.
#pragma once

#include "tests/support/test.hpp"
#include "viz/app/dashboard.hpp"
#include "viz/app/recording.hpp"
#include "viz/app/ui_context.hpp"

namespace draftproof::testing {

class Driver {
 public:
  // The whole dashboard, or one panel of it in the whole window.
  explicit Driver(std::vector<std::unique_ptr<Panel>> panels, DashboardOptions options = {}, int width_px = 1920,
                  int height_px = 1080);

  Dashboard& dashboard() { return dashboard_; }
  // The panel as its own type.
  template <class P>
  P& panel(const std::string& name) {
    return dynamic_cast<P&>(dashboard_.panel(name));
  }

  // One frame, after which no worker is busy.
  void frame();
  void frames(int count);
  // One more frame, and what is read in it, tooltips too: a run of letters a line.
  std::string text();
  // The same from left to right, then down: a row of a table is a line.
  std::string lines();
  // The control's place, or a test failure that lists the controls that there are.
  ControlRect rect(const std::string& control);
  bool has(const std::string& control) const;

  void move_to(ImVec2 position_px);
  void click(const std::string& control);
  void click_at(ImVec2 position_px);
  // Presses at one place, moves in steps, and lets go at the other.
  void drag(ImVec2 from_px, ImVec2 to_px);
  // Drags the slider's grip to this share of its track.
  void drag_slider(const std::string& control, float share);
  // Control-click, and the value typed in.
  void type_into_slider(const std::string& control, const std::string& value);
  // Opens a choice and clicks the item.
  void choose(const std::string& control, const std::string& item);
  // Clicks the field, replaces what it holds and presses Enter.
  void type_into(const std::string& control, const std::string& text);
  void press(ImGuiKey key);

  // Recording of what was done so far, to be replayed.
  const Recording& recording() const { return recording_; }
  // A recording's frames again, in this dashboard.
  void replay(const Recording& recording);

 private:
  UiContext context_;
  NullSurface surface_;
  Dashboard dashboard_;
  Recording recording_;
};

// One panel in the whole window.
template <class P>
class PanelDriver {
 public:
  explicit PanelDriver(std::unique_ptr<P> panel = std::make_unique<P>(), float scale = 1.0f, int width_px = 1920,
                       int height_px = 1080, const std::string& out_folder = "")
      : name_(panel->info().name) {
    DashboardOptions options;
    options.ui.scale = scale;
    options.only_panel = name_;
    if (!out_folder.empty()) options.out_folder = out_folder;
    std::vector<std::unique_ptr<Panel>> panels;
    panels.push_back(std::move(panel));
    driver_ = std::make_unique<Driver>(std::move(panels), options, width_px, height_px);
  }
  Driver* operator->() const { return driver_.get(); }
  Driver& operator*() const { return *driver_; }
  P& panel() const { return driver_->panel<P>(name_); }
  const auto& shown() const { return *panel().shown(); }

 private:
  std::string name_;
  std::unique_ptr<Driver> driver_;
};

// A panel with these settings.
template <class P, class Settings>
std::unique_ptr<P> panel_with(const Settings& settings) {
  auto panel = std::make_unique<P>();
  panel->set(settings);
  return panel;
}

}  // namespace draftproof::testing
