// Lines, markers and axes as the panels draw them.
#pragma once

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "viz/panels/colours.hpp"

namespace draftproof {

inline ImPlotSpec line_of(const PaletteColour& colour, float weight = 2.6f, float alpha = 1.0f) {
  ImPlotSpec spec;
  spec.LineColor = to_vec4(colour, alpha);
  spec.LineWeight = weight;
  return spec;
}

inline ImPlotSpec line_with_markers(const PaletteColour& colour, ImPlotMarker marker = ImPlotMarker_Circle) {
  ImPlotSpec spec = line_of(colour);
  spec.Marker = marker;
  spec.MarkerSize = 0.2f * ImGui::GetFontSize();
  spec.MarkerFillColor = to_vec4(colour);
  spec.MarkerLineColor = to_vec4(colour);
  return spec;
}

inline ImPlotSpec fill_of(const PaletteColour& colour, float alpha) {
  ImPlotSpec spec;
  spec.FillColor = to_vec4(colour);
  spec.FillAlpha = alpha;
  spec.LineColor = to_vec4(colour, 0);
  return spec;
}

// A logarithmic axis with a tick at each power of two from `least` to `most`.
inline void setup_axis_of_powers(ImAxis axis, double least, double most) {
  ImPlot::SetupAxisScale(axis, ImPlotScale_Log10);
  std::vector<double> ticks;
  double tick = std::exp2(std::ceil(std::log2(least)));
  while (tick <= most * 1.001) {
    ticks.push_back(tick);
    tick *= 2;
  }
  std::vector<std::string> texts;
  std::vector<const char*> labels;
  for (const double at : ticks) {
    texts.push_back(std::to_string(at));
    std::string& text = texts.back();
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  for (const std::string& text : texts) labels.push_back(text.c_str());
  if (ticks.size() > 1) ImPlot::SetupAxisTicks(axis, ticks.data(), static_cast<int>(ticks.size()), labels.data());
}

// A plot, and below it one sentence that says what is to be seen; both together have `size`, of which a side that is
// not positive is all the room there is. `plot` gets the size that is left.
template <class Plot>
void with_caption(const char* sentence, ImVec2 size, const Plot& plot) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (size.x <= 0) size.x = room.x;
  if (size.y <= 0) size.y = room.y;
  const float text = ImGui::CalcTextSize(sentence, nullptr, false, size.x).y + 2 * ImGui::GetStyle().ItemSpacing.y;
  ImGui::BeginGroup();
  plot(ImVec2{size.x, std::max(size.y - text, 4 * ImGui::GetFontSize())});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + size.x);
  ImVec4 colour = ImGui::GetStyleColorVec4(ImGuiCol_Text);
  colour.w *= 0.75f;  // quieter than the plot, and still seen from the last row
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  ImGui::TextUnformatted(sentence);
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  ImGui::EndGroup();
}

inline int size_of(const std::vector<double>& values) {
  return static_cast<int>(values.size());
}

}  // namespace draftproof
