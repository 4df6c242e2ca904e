// Lines, markers and axes as the panels draw them.
#pragma once

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "viz/panels/colours.hpp"
#include "viz/panels/series.hpp"

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

// Least and largest of the positive finite values: what a logarithmic axis can show.
struct LogExtent {
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;

  void add(double value) {
    if (!(value > 0.0) || !std::isfinite(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  void add(const std::vector<double>& values) {
    for (const double value : values) add(value);
  }
};

enum class LogTicks : std::uint8_t { decimal, powers_of_two, powers_of_four };

// 1, 2 and 5 of each decade within one and a half decades, or every power of two or four, from `least` to `most`.
inline std::vector<double> log_ticks(double least, double most, LogTicks kind) {
  constexpr double kSlack = 1.001;
  std::vector<double> ticks;
  if (kind != LogTicks::decimal) {
    const double step = kind == LogTicks::powers_of_two ? 1 : 2;
    for (double at = step * std::ceil(std::log2(least / kSlack) / step); std::exp2(at) <= most * kSlack; at += step)
      ticks.push_back(std::exp2(at));
    return ticks;
  }
  if (most / least > 30.0) return ticks;  // ImPlot's own: a tick a decade
  for (double decade = std::floor(std::log10(least)); std::pow(10.0, decade) <= most; decade += 1)
    for (const double digit : {1.0, 2.0, 5.0})
      if (const double at = digit * std::pow(10.0, decade); at >= least && at <= most) ticks.push_back(at);
  return ticks;
}

// A logarithmic axis over what is shown, with a margin that is a factor. Every one is set up here: the padding of
// ImPlot's own fit is a difference, which puts the least of several decades below zero, and an empty or a zero one at
// 1e-308.
inline void setup_log_axis(ImAxis axis, const LogExtent& shown, ImPlotCond when = ImPlotCond_Always,
                           LogTicks kind = LogTicks::decimal) {
  const bool is_empty = !(shown.most > 0.0);
  const double least = is_empty ? 1.0 : shown.least;
  const double most = is_empty ? 10.0 : shown.most;
  const double margin = std::max(1.08, std::pow(most / least, 0.04));
  ImPlot::SetupAxisScale(axis, ImPlotScale_Log10);
  ImPlot::SetupAxisLimits(axis, least / margin, most * margin, when);
  const std::vector<double> ticks = log_ticks(least / margin, most * margin, kind);
  if (ticks.size() < 2) return;
  std::vector<std::string> texts;
  std::vector<const char*> labels;
  for (const double at : ticks) texts.push_back(number("%.6g", at));
  for (const std::string& text : texts) labels.push_back(text.c_str());
  ImPlot::SetupAxisTicks(axis, ticks.data(), static_cast<int>(ticks.size()), labels.data());
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

}  // namespace draftproof
