#include "viz/app/dashboard.hpp"

#include <imgui.h>
#include <imgui_internal.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "studies/figures/figure.hpp"
#include "viz/app/vector_picture.hpp"
#include "viz/panels/colours.hpp"

namespace draftproof {
namespace {

void write_file(const ExportRequest& request) {
  const std::filesystem::path folder = std::filesystem::path(request.path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) throw input_error(folder.string(), "cannot be made: " + error.message());
  if (!request.path.ends_with(".csv")) return write_figure(request.path, request.contents);
  AtomicFile file(request.path);
  file.stream() << request.contents;
  file.commit();
}

constexpr ImGuiWindowFlags kWholeWindow = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                          ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoCollapse |
                                          ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking;

// Narrow panels that stand at the right of the docked layout.
constexpr std::array kAtRight{"distribution_lab", "acceptance_decay", "exactness", "kernels"};

bool stands_at_right(const Panel& panel) {
  return std::find(kAtRight.begin(), kAtRight.end(), std::string(panel.info().name)) != kAtRight.end();
}

// Is there room for panels side by side?
bool has_two_sides() {
  constexpr float kLeast_em = 48;
  return ImGui::GetMainViewport()->WorkSize.x > kLeast_em * ImGui::GetFontSize();
}

// Where a panel stands when all are visible at once: a grid as square as may be.
ImVec2 grid_of(std::size_t count) {
  int columns = 1;
  while (static_cast<std::size_t>(columns) * static_cast<std::size_t>(columns) < count) ++columns;
  const int rows = (static_cast<int>(count) + columns - 1) / columns;
  return {static_cast<float>(columns), static_cast<float>(std::max(1, rows))};
}

}  // namespace

Exporter::Exporter()
    : worker_([](const ExportRequest& request, Job&, const Worker<ExportRequest, std::string>::Publish& publish) {
        write_file(request);
        publish("written to " + request.path);
      }) {}

std::string Exporter::message() const {
  const WorkerState state = worker_.state();
  if (!state.error.empty()) return state.error;
  const auto latest = worker_.latest();
  return latest ? *latest : std::string();
}

Dashboard::Dashboard(std::vector<std::unique_ptr<Panel>> panels, DashboardOptions options)
    : panels_(std::move(panels)), options_(std::move(options)) {
  if (!options_.only_panel.empty()) panel(options_.only_panel);
}

Panel& Dashboard::panel(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& panel : panels_) {
    if (panel->info().name == name) return *panel;
    known.emplace_back(panel->info().name);
  }
  throw usage_error("--panel", in_quotes(name) + " is not one of " + joined(known, ", ") + did_you_mean(name, known));
}

void Dashboard::settle() {
  for (const auto& panel : panels_)
    if (options_.only_panel.empty() || panel->info().name == options_.only_panel) panel->settle();
  exporter_.settle();
}

void Dashboard::open(const std::string& path) {
  message_.clear();
  try {
    const OpenedResult result = open_result(path);
    bool is_shown = false;
    for (const auto& panel : panels_) {
      if (!options_.only_panel.empty() && panel->info().name != options_.only_panel) continue;
      try {
        if (!panel->open(result)) continue;
        if (!is_shown) to_front_ = {panel->info().title};
        is_shown = true;
      } catch (const Error& error) {
        if (message_.empty()) message_ = printable_line(error.what());
      }
    }
    // A file that one panel cannot use may still be what another one is for.
    if (is_shown) return message_.clear();
    if (!message_.empty()) return;
    message_ = printable_line(path) + ": no panel shows such a file" +
               (result.verb.empty() ? std::string() : " (a result of draftproof " + printable_line(result.verb) + ")");
  } catch (const Error& error) {
    message_ = printable_line(error.what());
  }
}

void Dashboard::bring_to_front(const Panel& panel) {
  in_front_ = panel.info().name;
  to_front_ = {panel.info().title};
}

std::string Dashboard::address() const {
  const std::string controls = controls_.address();
  if (in_front_.empty()) return controls;
  return "panel=" + in_front_ + (controls.empty() ? "" : "&" + controls);
}

void Dashboard::go_to(const std::string& address) {
  controls_.go_to(address);
  const std::string wanted(split(address, '&').front());
  for (const auto& panel : panels_) {
    if (wanted != std::string("panel=") + panel->info().name) continue;
    in_front_ = panel->info().name;
    first_in_front_ = panel->info().title;
    if (laid_out_) bring_to_front(*panel);
  }
}

void Dashboard::draw() {
  controls_.begin_frame();
  if (!options_.only_panel.empty()) {
    const ImGuiViewport* const viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(viewport->WorkPos);
    ImGui::SetNextWindowSize(viewport->WorkSize);
    Panel& only = panel(options_.only_panel);
    if (ImGui::Begin(only.info().title, nullptr, kWholeWindow)) draw_panel(only);
    ImGui::End();
    return draw_message();
  }
  draw_menu();
  const ImVec2 grid = grid_of(panels_.size());
  if (!options_.side_by_side) {
    const ImGuiID dock = ImGui::DockSpaceOverViewport();
    if (!laid_out_) lay_out(dock);
  }
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  const ImVec2 cell{viewport->WorkSize.x / grid.x, viewport->WorkSize.y / grid.y};
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    if (options_.side_by_side) {
      const int column = static_cast<int>(i) % static_cast<int>(grid.x);
      const int row = static_cast<int>(i) / static_cast<int>(grid.x);
      ImGui::SetNextWindowPos({viewport->WorkPos.x + static_cast<float>(column) * cell.x,
                               viewport->WorkPos.y + static_cast<float>(row) * cell.y});
      ImGui::SetNextWindowSize(cell);
    }
    const char* const title = panels_[i]->info().title;
    if (!to_front_.empty() && to_front_.back() == title) ImGui::SetNextWindowFocus();
    if (ImGui::Begin(title)) draw_panel(*panels_[i]);
    ImGui::End();
  }
  if (!to_front_.empty()) to_front_.pop_back();
  draw_message();
}

void Dashboard::lay_out(unsigned dock_id) {
  constexpr float kRightShare = 0.42f;
  laid_out_ = true;
  ImGui::DockBuilderRemoveNode(dock_id);
  ImGui::DockBuilderAddNode(dock_id, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(dock_id, ImGui::GetMainViewport()->WorkSize);
  ImGuiID left = 0, right = 0;
  if (has_two_sides())
    ImGui::DockBuilderSplitNode(dock_id, ImGuiDir_Right, kRightShare, &right, &left);
  else
    left = right = dock_id;
  for (const auto& panel : panels_)
    ImGui::DockBuilderDockWindow(panel->info().title, stands_at_right(*panel) ? right : left);
  ImGui::DockBuilderFinish(dock_id);
  if (!first_in_front_.empty()) to_front_.push_back(first_in_front_);
  // The first of each side is in front, and the left one has the keyboard.
  for (const bool right_side : {false, true}) {
    const auto first = std::find_if(panels_.begin(), panels_.end(),
                                    [&](const auto& panel) { return stands_at_right(*panel) == right_side; });
    if (first != panels_.end()) to_front_.push_back((*first)->info().title);
  }
  to_front_.emplace_back();  // in this frame nothing: windows find their place in it
}

void Dashboard::set_scale(float scale) {
  options_.ui.scale = scale;
  set_theme(options_.ui);
}

void Dashboard::draw_menu() {
  controls_.begin_panel("menu");
  if (!ImGui::BeginMainMenuBar()) return;
  const bool folded = !has_two_sides();  // there is no room for all items side by side
  if (folded && !ImGui::BeginMenu("Menu")) {
    controls_.describe("Menu", nullptr);
    return ImGui::EndMainMenuBar();
  }
  for (const auto& panel : panels_) {
    if (ImGui::MenuItem(panel->info().title)) bring_to_front(*panel);
    controls_.describe(panel->info().title, panel->info().question);
  }
  ImGui::Separator();
  if (ImGui::MenuItem(options_.ui.dark ? "Light" : "Dark")) {
    options_.ui.dark = !options_.ui.dark;
    set_theme(options_.ui);
  }
  controls_.describe("theme", "Light or dark colours.");
  for (const float scale : {1.0f, 1.5f, 2.0f}) {
    const std::string label = std::to_string(static_cast<int>(scale * 100)) + " %";
    if (ImGui::MenuItem(label.c_str(), nullptr, options_.ui.scale == scale)) set_scale(scale);
    controls_.describe(label.c_str(), "Size of text and controls.");
  }
  for (const MenuAction& action : options_.actions) {
    if (ImGui::MenuItem(action.label.c_str())) action.act();
    controls_.describe(action.label.c_str(), action.tooltip.c_str());
  }
  if (!options_.about.empty()) {
    if (ImGui::MenuItem("About")) message_ = options_.about;
    controls_.describe("about", "Contents of this page, and what is left out.");
  }
  if (folded) ImGui::EndMenu();
  ImGui::EndMainMenuBar();
}

void Dashboard::draw_panel(Panel& panel) {
  const PanelInfo info = panel.info();
  ImGui::PushID(info.name);
  controls_.begin_panel(info.name);
  draw_tools(panel);
  draw_state(panel);
  ImGui::Separator();
  if (ImGui::GetContentRegionAvail().x < info.least_width_em * ImGui::GetFontSize()) {
    ImGui::TextUnformatted("This panel needs a wider screen.");
    ImGui::TextWrapped("Turn the phone on its side, or make the window wider.");
  } else {
    ImGui::BeginChild("body");
    panel.draw(controls_);
    ImGui::EndChild();
  }
  ImGui::PopID();
}

void Dashboard::draw_tools(Panel& panel) {
  ImGui::AlignTextToFramePadding();
  ImGui::PushTextWrapPos(0);
  ImGui::TextDisabled("%s", panel.info().question);
  ImGui::PopTextWrapPos();
  constexpr float kButtons_em = 19, kAction_em = 6;
  const std::size_t actions = options_.only_panel.empty() ? 0 : options_.actions.size();
  const float wanted = (kButtons_em + kAction_em * static_cast<float>(actions)) * ImGui::GetFontSize();
  const float text_end = ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x;
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
  if (right - text_end > wanted) ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - wanted);
  if (controls_.button("Copy command", "Copies the command line that prints the numbers that are shown."))
    ImGui::SetClipboardText(shell_command(panel.command()).c_str());
  const std::vector<const char*> endings =
      options_.save ? std::vector{"csv", "svg", "plot", "png"} : std::vector{"csv", "svg", "png", "pdf"};
  for (const char* const ending : endings) {
    ImGui::SameLine();
    const bool is_rows = std::string(ending) == "csv";
    std::string tooltip = is_rows ? "Writes what is shown as rows" : "Writes the figure, drawn by gnuplot,";
    tooltip += " to " + options_.out_folder + "/.";
    if (options_.save)
      tooltip = is_rows                         ? "Saves what is shown as rows."
                : std::string(ending) == "svg"  ? "Saves a picture of the panel as SVG."
                : std::string(ending) == "plot" ? "Saves the figure for papers as a script for gnuplot."
                                                : "Saves a picture of the page.";
    if (controls_.button(ending, tooltip.c_str())) export_panel(panel, ending);
  }
  if (options_.only_panel.empty()) return;  // the menu has them
  for (const MenuAction& action : options_.actions) {
    ImGui::SameLine();
    if (controls_.button(action.label.c_str(), action.tooltip.c_str())) action.act();
  }
}

void Dashboard::export_panel(const Panel& panel, const std::string& ending) {
  const std::string contents = ending == "csv" ? to_csv(panel.table()) : panel.figure_script();
  if (contents.empty() || (ending == "csv" && panel.table().columns.empty())) {
    message_ = "There is nothing to export yet.";
    return;
  }
  if (options_.save && ending == "svg") {
    pictured_ = &panel;
    return;
  }
  if (options_.save) return options_.save(std::string(panel.info().name) + "." + ending, contents);
  exported_ = &panel;
  exporter_.write({options_.out_folder + "/" + panel.info().name + "." + ending, contents});
}

void Dashboard::take_picture(const ImDrawData& drawn) {
  if (pictured_ == nullptr) return;
  if (!is_drawn_for_picture_) {  // the next frame is
    set_hard_edges(true);
    is_drawn_for_picture_ = true;
    return;
  }
  set_hard_edges(false);
  is_drawn_for_picture_ = false;
  const PanelInfo info = pictured_->info();
  pictured_ = nullptr;
  options_.save(std::string(info.name) + ".svg", svg_of(drawn, info.title));
}

void Dashboard::draw_state(Panel& panel) {
  const WorkerState state = panel.state();
  if (!state.error.empty()) {
    ImGui::PushStyleColor(ImGuiCol_Text, text_colour_of(palette::kVermilion));
    ImGui::TextWrapped("%s", printable(state.error).c_str());
    ImGui::PopStyleColor();
  }
  // A line of its own whether or not something runs, so that nothing jumps.
  if (state.busy) {
    ImGui::ProgressBar(static_cast<float>(state.progress.fraction),
                       {16 * ImGui::GetFontSize(), ImGui::GetTextLineHeight()}, "");
    ImGui::SameLine();
    if (ImGui::SmallButton("cancel")) panel.cancel();
    controls_.describe("cancel", "Ends what is being computed; what is shown stays.");
    ImGui::SameLine();
    ImGui::TextDisabled("%s", state.progress.doing.c_str());
  } else {
    ImGui::TextDisabled("%s", exported_ == &panel ? printable_line(exporter_.message()).c_str() : "");
  }
}

void Dashboard::draw_message() {
  if (message_.empty()) return;
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + viewport->WorkSize.y},
                          ImGuiCond_Always, {0.5f, 1.5f});
  controls_.begin_panel("message");
  const ImGuiWindowFlags flags = ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoSavedSettings |
                                 ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoTitleBar |
                                 ImGuiWindowFlags_NoFocusOnAppearing;
  if (ImGui::Begin("Message", nullptr, flags)) {
    ImGui::PushTextWrapPos(40 * ImGui::GetFontSize());
    ImGui::TextUnformatted(message_.c_str());
    ImGui::PopTextWrapPos();
    if (controls_.button("close", "Takes this message away.")) message_.clear();
  }
  ImGui::End();
}

}  // namespace draftproof
