#include "tests/viz/driver.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/looks.hpp"

namespace draftproof::testing {

Driver::Driver(std::vector<std::unique_ptr<Panel>> panels, DashboardOptions options, int width_px, int height_px)
    : context_(options.ui),
      surface_(width_px, height_px),
      dashboard_(std::move(panels), options),
      recording_{width_px, height_px, static_cast<double>(options.ui.scale), options.only_panel, {}} {
  frames(4);  // until docked windows have found their places
}

void Driver::frame() {
  surface_.begin_frame();
  recording_.frames.push_back({static_cast<double>(ImGui::GetIO().DeltaTime), events_of_frame()});
  dashboard_.draw();
  surface_.end_frame();
  dashboard_.settle();
}

void Driver::frames(int count) {
  for (int i = 0; i < count; ++i) frame();
}

std::string Driver::text() {
  return looks_of_frame([this] { frame(); }).text;
}

std::string Driver::lines() {
  return looks_of_frame([this] { frame(); }).lines;
}

bool Driver::has(const std::string& control) const {
  return const_cast<Dashboard&>(dashboard_).controls().find(control) != nullptr;
}

ControlRect Driver::rect(const std::string& control) {
  const ControlRect* const found = dashboard_.controls().find(control);
  if (found == nullptr) {
    std::string names;
    for (const auto& [name, place] : dashboard_.controls().all()) names += "\n  " + name;
    FAIL("no control is named " << control << "; there are" << names);
  }
  return *found;
}

void Driver::move_to(ImVec2 position_px) {
  ImGui::GetIO().AddMousePosEvent(position_px.x, position_px.y);
  frame();
}

void Driver::click_at(ImVec2 position_px) {
  move_to(position_px);
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, true);
  frame();
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, false);
  frames(2);
}

void Driver::click(const std::string& control) {
  click_at(rect(control).center());
}

void Driver::drag(ImVec2 from_px, ImVec2 to_px) {
  constexpr int kSteps = 5;
  move_to(from_px);
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, true);
  frame();
  for (int step = 1; step <= kSteps; ++step) {
    const float share = static_cast<float>(step) / kSteps;
    move_to({from_px.x + share * (to_px.x - from_px.x), from_px.y + share * (to_px.y - from_px.y)});
  }
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, false);
  frames(2);
}

void Driver::drag_slider(const std::string& control, float share) {
  const ControlRect track = rect(control);
  drag(track.center(), {track.min.x + share * (track.max.x - track.min.x), track.center().y});
}

void Driver::type_into_slider(const std::string& control, const std::string& value) {
  ImGuiIO& io = ImGui::GetIO();
  io.AddKeyEvent(ImGuiMod_Ctrl, true);
  frame();
  click(control);
  io.AddKeyEvent(ImGuiMod_Ctrl, false);
  frame();
  press(ImGuiKey_End);
  for (int i = 0; i < 24; ++i) press(ImGuiKey_Backspace);
  io.AddInputCharactersUTF8(value.c_str());
  frames(static_cast<int>(value.size()) + 1);
  press(ImGuiKey_Enter);
}

void Driver::choose(const std::string& control, const std::string& item) {
  click(control);
  frames(2);
  click(control + "/" + item);
}

void Driver::type_into(const std::string& control, const std::string& text) {
  ImGuiIO& io = ImGui::GetIO();
  click(control);
  io.AddKeyEvent(ImGuiMod_Ctrl, true);
  press(ImGuiKey_A);
  io.AddKeyEvent(ImGuiMod_Ctrl, false);
  frame();
  press(ImGuiKey_Delete);
  io.AddInputCharactersUTF8(text.c_str());
  frames(static_cast<int>(text.size()) + 1);
  press(ImGuiKey_Enter);
}

void Driver::press(ImGuiKey key) {
  ImGui::GetIO().AddKeyEvent(key, true);
  frame();
  ImGui::GetIO().AddKeyEvent(key, false);
  frame();
}

void Driver::replay(const Recording& recording) {
  for (const RecordedFrame& recorded : recording.frames) {
    repeat_events(recorded);
    for (const RecordedEvent& event : recorded.events)
      if (event.kind == RecordedEvent::Kind::open) dashboard_.open(event.path);
    frame();
  }
}

}  // namespace draftproof::testing
