// All panels in one docked layout, with what they have in common: command lines to copy, exports, progress, errors.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "studies/worker.hpp"
#include "viz/app/ui_context.hpp"
#include "viz/panels/controls.hpp"
#include "viz/panels/panel.hpp"

struct ImDrawData;

namespace draftproof {

// Writes what a panel shows to files, on a thread of its own: CSV, and the figure by gnuplot.

struct ExportRequest {
  std::string path;      // ends with .csv, .svg, .png or .pdf; its folder is made
  std::string contents;  // the rows as CSV, or the script of the figure
};

class Exporter {
 public:
  Exporter();
  void write(ExportRequest request) { worker_.request(std::move(request)); }
  // "written to out/dash/lab.csv", why it could not be, or nothing yet.
  std::string message() const;
  void settle() { worker_.settle(); }

 private:
  Worker<ExportRequest, std::string> worker_;
};

struct MenuAction {
  std::string label, tooltip;
  std::function<void()> act;
};

struct DashboardOptions {
  UiOptions ui;
  std::string only_panel;               // fills the window; empty: all panels, docked
  bool side_by_side = false;            // every panel is visible at once, for measuring frames
  std::string out_folder = "out/dash";  // of exports
  // Where it is set, exports go there and not to files: the rows as CSV, the panel as SVG (there is no gnuplot), the
  // figure's script, and the wish for a picture of the whole, whose contents are the script too.
  std::function<void(const std::string& name, const std::string& contents)> save;
  std::vector<MenuAction> actions;  // further items of the menu
  std::string about;                // a menu item shows it, where it is not empty
};

class Dashboard {
 public:
  // Usage error where only_panel is the name of none of them.
  Dashboard(std::vector<std::unique_ptr<Panel>> panels, DashboardOptions options);

  // One frame, between ImGui::NewFrame() and ImGui::Render().
  void draw();
  // After ImGui::Render(), where exports go to `save`: the SVG that was asked for.
  void take_picture(const ImDrawData& drawn);

  // A result for all panels that take it, of which the first comes to the front. What is wrong with one that none takes
  // is a message in the window.
  void open(const std::string& path);
  const std::string& message() const { return message_; }
  void tell(std::string message) { message_ = std::move(message); }

  const std::vector<std::unique_ptr<Panel>>& panels() const { return panels_; }
  // Usage error for a name that none has.
  Panel& panel(const std::string& name) const;
  const std::string& only_panel() const { return options_.only_panel; }
  Controls& controls() { return controls_; }
  // The view as text: the panel in front, and the values of all panels' controls that have been changed.
  std::string address() const;
  void go_to(const std::string& address);
  const UiOptions& ui() const { return options_.ui; }
  void set_scale(float scale);
  // Waits for all panels, for tests and replays.
  void settle();

 private:
  void bring_to_front(const Panel& panel);
  void draw_menu();
  void draw_panel(Panel& panel);
  void draw_tools(Panel& panel);
  void draw_state(Panel& panel);
  void draw_message();
  void lay_out(unsigned dock_id);
  void export_panel(const Panel& panel, const std::string& ending);

  std::vector<std::unique_ptr<Panel>> panels_;
  DashboardOptions options_;
  Controls controls_;
  Exporter exporter_;
  const Panel* pictured_ = nullptr;  // a picture of it as SVG is asked for
  bool is_drawn_for_picture_ = false;
  const Panel* exported_ = nullptr;  // whose message the exporter's is
  std::string message_;
  std::string in_front_;               // name of the panel that was brought to the front last
  std::string first_in_front_;         // title of the panel that an address asks for, until the first layout
  std::vector<std::string> to_front_;  // titles of windows to be focused, the last one in the next frame
  bool laid_out_ = false;
};

}  // namespace draftproof
