#include "viz/panels/controls.hpp"

#include <imgui_stdlib.h>
#include <algorithm>
#include <charconv>

#include "base/split.hpp"
#include "base/strict_number.hpp"

namespace draftproof {
namespace {

// Values in addresses: the fewest digits that read back as the same number.
template <class Number>
std::string value_text(Number value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
std::string value_text(bool value) {
  return value ? "1" : "0";
}
std::string value_text(const std::string& value) {
  return value;
}
std::string value_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ",") + value_text(value);
  return text;
}

std::string value_text(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : "\n") + value;
  return text;
}

template <class Number>
void read_value(const std::string& text, Number& value) {
  Number read{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error == std::errc{} && end == text.data() + text.size()) value = read;
}
void read_value(const std::string& text, bool& value) {
  value = text == "1";
}
void read_value(const std::string& text, std::string& value) {
  value = text;
}
void read_value(const std::string& text, std::vector<double>& values) {
  std::vector<double> read;
  for (const auto& part : split(text, ',')) {
    double value = -1;
    read_value(std::string(part), value);
    if (!(value >= 0)) return;
    read.push_back(value);
  }
  if (read.size() == values.size() || values.empty()) values = std::move(read);
}

void read_value(const std::string& text, std::vector<std::string>& values) {
  values.clear();
  for (const auto& part : split(text, '\n')) values.emplace_back(part);
}

std::string percent_encoded(const std::string& text) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string("-_.,:/").find(c) < 6)
      encoded += c;
    else
      encoded.append(1, '%').append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
  }
  return encoded;
}
std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// In its range, as a control would leave it.
template <class Value>
bool clamp_to(Value& value, Value least, Value most) {
  value = std::clamp(value, least, most);
  return true;
}

}  // namespace

void Controls::begin_frame() {
  rects_.clear();
}

template <class Value>
bool Controls::addressed(const char* label, Value& value) {
  const std::string name = panel_ + "/" + label;
  const auto entry = addressed_.try_emplace(name, Addressed{value_text(value), {}}).first;
  bool changed = false;
  if (const auto asked = asked_.find(name); asked != asked_.end()) {
    const Value before = value;
    read_value(asked->second.value, value);
    changed = !(value == before);
    if (--asked->second.frames == 0) asked_.erase(asked);
  }
  entry->second.now = value_text(value);
  return changed;
}

void Controls::remember(const char* label, std::vector<double>& value) {
  addressed(label, value);
}

void Controls::remember(const char* label, std::vector<std::string>& value) {
  addressed(label, value);
}

void Controls::remember(const char* label, std::uint64_t& value) {
  addressed(label, value);
}

std::string Controls::address() const {
  std::string address;
  for (const auto& [name, value] : addressed_)
    if (value.now != value.first)
      address += (address.empty() ? "" : "&") + percent_encoded(name) + "=" + percent_encoded(value.now);
  return address;
}

void Controls::go_to(const std::string& address) {
  for (const auto& part : split(address, '&')) {
    const std::string text(part);
    const std::size_t at = text.find('=');
    if (at != std::string::npos) asked_[percent_decoded(text.substr(0, at))] = {percent_decoded(text.substr(at + 1))};
  }
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
  const bool given = addressed(label, value) && clamp_to(value, range.least, range.most);
  // The name stands behind the track: tests aim at the track.
  const ImVec2 min = ImGui::GetItemRectMin();
  describe(label, tooltip);
  mark(label, {min, {min.x + 10 * ImGui::GetFontSize(), ImGui::GetItemRectMax().y}});
  return changed || given;
}

bool Controls::slider(const char* label, std::int64_t& value, std::int64_t least, std::int64_t most,
                      const char* tooltip) {
  width_of_controls();
  const bool changed =
      ImGui::SliderScalar(label, ImGuiDataType_S64, &value, &least, &most, "%lld", ImGuiSliderFlags_AlwaysClamp);
  const bool given = addressed(label, value) && clamp_to(value, least, most);
  const ImVec2 min = ImGui::GetItemRectMin();
  describe(label, tooltip);
  mark(label, {min, {min.x + 10 * ImGui::GetFontSize(), ImGui::GetItemRectMax().y}});
  return changed || given;
}

bool Controls::choice(const char* label, std::string& value, std::span<const std::string> items, const char* tooltip) {
  width_of_controls();
  const std::string before = value;
  bool changed = addressed(label, value);
  if (changed && std::find(items.begin(), items.end(), value) == items.end()) {  // no item
    value = before;
    changed = false;
  }
  const bool open = ImGui::BeginCombo(label, value.c_str(), ImGuiComboFlags_HeightLarge);
  if (!open) {
    const ImVec2 min = ImGui::GetItemRectMin();
    describe(label, tooltip);
    mark(label, {min, {min.x + 10 * ImGui::GetFontSize(), ImGui::GetItemRectMax().y}});
    return changed;
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
  return addressed(label, value) || changed;
}

bool Controls::button(const char* label, const char* tooltip) {
  const bool pressed = ImGui::Button(label);
  describe(label, tooltip);
  return pressed;
}

bool Controls::text(const char* label, std::string& value, const char* tooltip) {
  ImGui::SetNextItemWidth(std::max(10 * ImGui::GetFontSize(), ImGui::GetContentRegionAvail().x * 0.6f));
  const std::string name = panel_ + "/" + label;
  const bool given = addressed(label, value);
  const auto typing = typed_.find(name);
  std::string shown = typing == typed_.end() ? value : typing->second;
  const float begin = ImGui::GetCursorScreenPos().x;
  const float width = ImGui::CalcItemWidth();
  const bool entered = ImGui::InputText(label, &shown, ImGuiInputTextFlags_EnterReturnsTrue);
  describe(label, tooltip);
  mark(label, {{begin, ImGui::GetItemRectMin().y}, {begin + width, ImGui::GetItemRectMax().y}, true});
  if (entered || ImGui::IsItemDeactivated()) {
    typed_.erase(name);
    const bool changed = shown != value;
    if (changed) value = shown;
    return changed;
  }
  if (ImGui::IsItemActive()) typed_[name] = shown;
  return given;
}

const ControlRect* Controls::find(const std::string& name) const {
  const auto found = rects_.find(name);
  return found == rects_.end() ? nullptr : &found->second;
}

}  // namespace draftproof
