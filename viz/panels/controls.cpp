#include "viz/panels/controls.hpp"

#include <imgui_stdlib.h>
#include <algorithm>

namespace draftproof {

void Controls::begin_frame() {
  rects_.clear();
}

void Controls::begin_panel(const std::string& panel) {
  panel_ = panel;
}

void Controls::width_of_controls() const {
  ImGui::SetNextItemWidth(10 * ImGui::GetFontSize());
}

void Controls::describe(const char* label, const char* tooltip) {
  mark(label, {ImGui::GetItemRectMin(), ImGui::GetItemRectMax()});
  if (tooltip != nullptr && ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled)) {
    if (ImGui::BeginTooltip()) {
      ImGui::PushTextWrapPos(28 * ImGui::GetFontSize());
      ImGui::TextUnformatted(tooltip);
      ImGui::PopTextWrapPos();
      ImGui::EndTooltip();
    }
  }
}

void Controls::mark(const std::string& label, ControlRect rect) {
  rects_[panel_ + "/" + label] = rect;
}

bool Controls::slider(const char* label, double& value, SliderRange range, const char* tooltip) {
  width_of_controls();
  const ImGuiSliderFlags flags =
      ImGuiSliderFlags_AlwaysClamp | (range.logarithmic ? ImGuiSliderFlags_Logarithmic : ImGuiSliderFlags_None);
  const bool changed =
      ImGui::SliderScalar(label, ImGuiDataType_Double, &value, &range.least, &range.most, range.format, flags);
  // The name stands behind the track: tests aim at the track.
  const ImVec2 min = ImGui::GetItemRectMin();
  describe(label, tooltip);
  mark(label, {min, {min.x + 10 * ImGui::GetFontSize(), ImGui::GetItemRectMax().y}});
  return changed;
}

bool Controls::slider(const char* label, std::int64_t& value, std::int64_t least, std::int64_t most,
                      const char* tooltip) {
  width_of_controls();
  const bool changed =
      ImGui::SliderScalar(label, ImGuiDataType_S64, &value, &least, &most, "%lld", ImGuiSliderFlags_AlwaysClamp);
  const ImVec2 min = ImGui::GetItemRectMin();
  describe(label, tooltip);
  mark(label, {min, {min.x + 10 * ImGui::GetFontSize(), ImGui::GetItemRectMax().y}});
  return changed;
}

bool Controls::choice(const char* label, std::string& value, std::span<const std::string> items, const char* tooltip) {
  width_of_controls();
  bool changed = false;
  const bool open = ImGui::BeginCombo(label, value.c_str(), ImGuiComboFlags_HeightLarge);
  if (!open) {
    const ImVec2 min = ImGui::GetItemRectMin();
    describe(label, tooltip);
    mark(label, {min, {min.x + 10 * ImGui::GetFontSize(), ImGui::GetItemRectMax().y}});
    return false;
  }
  for (const std::string& item : items) {
    if (ImGui::Selectable(item.c_str(), item == value) && item != value) {
      value = item;
      changed = true;
    }
    mark(std::string(label) + "/" + item, {ImGui::GetItemRectMin(), ImGui::GetItemRectMax()});
    if (item == value) ImGui::SetItemDefaultFocus();
  }
  ImGui::EndCombo();
  return changed;
}

bool Controls::toggle(const char* label, bool& value, const char* tooltip) {
  const bool changed = ImGui::Checkbox(label, &value);
  describe(label, tooltip);
  return changed;
}

bool Controls::button(const char* label, const char* tooltip) {
  const bool pressed = ImGui::Button(label);
  describe(label, tooltip);
  return pressed;
}

bool Controls::text(const char* label, std::string& value, const char* tooltip) {
  ImGui::SetNextItemWidth(std::max(10 * ImGui::GetFontSize(), ImGui::GetContentRegionAvail().x * 0.6f));
  const std::string name = panel_ + "/" + label;
  const auto typing = typed_.find(name);
  std::string shown = typing == typed_.end() ? value : typing->second;
  const float begin = ImGui::GetCursorScreenPos().x;
  const float width = ImGui::CalcItemWidth();
  const bool entered = ImGui::InputText(label, &shown, ImGuiInputTextFlags_EnterReturnsTrue);
  describe(label, tooltip);
  mark(label, {{begin, ImGui::GetItemRectMin().y}, {begin + width, ImGui::GetItemRectMax().y}});
  if (entered || ImGui::IsItemDeactivated()) {
    typed_.erase(name);
    const bool changed = shown != value;
    if (changed) value = shown;
    return changed;
  }
  if (ImGui::IsItemActive()) typed_[name] = shown;
  return false;
}

const ControlRect* Controls::find(const std::string& name) const {
  const auto found = rects_.find(name);
  return found == rects_.end() ? nullptr : &found->second;
}

}  // namespace draftproof
