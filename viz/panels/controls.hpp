// The widgets of the panels. Each has a label, what it changes, its range, and a tooltip of one sentence that names the
// symbol and the equation. Where each stands is kept by name, so that tests can move the mouse there.
#pragma once

#include <imgui.h>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace draftproof {

struct SliderRange {
  double least;
  double most;
  bool logarithmic = false;
  const char* format = "%.3g";
};

struct ControlRect {
  ImVec2 min, max;
  bool is_field = false;  // for text, of which a long one is scrolled
  ImVec2 center() const { return {(min.x + max.x) / 2, (min.y + max.y) / 2}; }
};

class Controls {
 public:
  // Before a panel draws. Names of controls are "<panel>/<label>" from here on.
  void begin_panel(const std::string& panel);
  // Before a frame: what is not drawn again is gone.
  void begin_frame();

  // Each is true in the frame in which the value changes.
  bool slider(const char* label, double& value, SliderRange range, const char* tooltip);
  bool slider(const char* label, std::int64_t& value, std::int64_t least, std::int64_t most, const char* tooltip);
  bool slider(const char* label, float& value, SliderRange range, const char* tooltip) {
    return narrowed<double>(value, [&](double& wide) { return slider(label, wide, range, tooltip); });
  }
  bool slider(const char* label, std::int32_t& value, std::int64_t least, std::int64_t most, const char* tooltip) {
    return narrowed<std::int64_t>(value, [&](std::int64_t& wide) { return slider(label, wide, least, most, tooltip); });
  }
  bool choice(const char* label, std::string& value, std::span<const std::string> items, const char* tooltip);
  bool toggle(const char* label, bool& value, const char* tooltip);
  bool button(const char* label, const char* tooltip);
  // Takes over what was typed when the person presses Enter or leaves the field.
  bool text(const char* label, std::string& value, const char* tooltip);

  // For a setting that no control above edits as a whole, as rows whose bars are dragged: it becomes part of the
  // address.
  void remember(const char* label, std::vector<double>& value);
  void remember(const char* label, std::vector<std::string>& value);  // of one line each
  void remember(const char* label, std::uint64_t& value);

  // The address of what the controls show: "<panel>/<label>=<value>&..." of those that no longer stand as when they
  // were first drawn, percent-encoded. Taken over by controls as they are drawn in the next frames; what names no
  // control is ignored.
  std::string address() const;
  void go_to(const std::string& address);

  // For what a panel draws itself: shows `tooltip` over the item drawn last, and keeps its place as "<panel>/<label>".
  void describe(const char* label, const char* tooltip);
  // Keeps a place that is no item, in pixels of the window.
  void mark(const std::string& label, ControlRect rect);

  // Null where no such control was drawn in this frame.
  const ControlRect* find(const std::string& name) const;
  const std::map<std::string, ControlRect>& all() const { return rects_; }

 private:
  template <class Wide, class Value, class Slide>
  static bool narrowed(Value& value, const Slide& slide) {
    auto wide = static_cast<Wide>(value);
    if (!slide(wide)) return false;
    value = static_cast<Value>(wide);
    return true;
  }
  void width_of_controls() const;
  // Keeps `value` for the address. True where an address gave it another one.
  template <class Value>
  bool addressed(const char* label, Value& value);

  struct Addressed {
    std::string first, now;  // values
  };
  struct Asked {
    std::string value;
    int frames = 3;  // a control that sets others, as a lesson, may be drawn behind them
  };
  std::string panel_;
  std::map<std::string, Addressed> addressed_;
  std::map<std::string, Asked> asked_;
  std::map<std::string, ControlRect> rects_;
  std::map<std::string, std::string> typed_;  // text that is being edited
};

// Controls in rows that wrap.

// The next control stands beside the last one where there is room for so many times the font's size.
inline void next_control(float width_em) {
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const float end = ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x + width_em * ImGui::GetFontSize();
  if (end <= right) ImGui::SameLine();
}

}  // namespace draftproof
