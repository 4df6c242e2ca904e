#include "viz/panels/speculate_lanes_view.hpp"

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "viz/panels/colours.hpp"

namespace draftproof {
namespace {

constexpr double kHalfHeight = 0.36;  // of a span, in units of the y axis
constexpr float kFaint = 0.22f;
constexpr float kPixelsMin = 0.5f;  // of a part of a step that is drawn
constexpr double kPlainLane = 1.0;
constexpr double kSpeculationLane = 0.0;

// A click, or the end of a pan?
bool was_dragged() {
  const ImGuiIO& io = ImGui::GetIO();
  return io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] > io.MouseDragThreshold * io.MouseDragThreshold;
}

void show_step(const char* lane, std::size_t number, const SpeculateStep& step) {
  if (!ImGui::BeginTooltip()) return;
  ImGui::Text("%s, step %zu: %.3g ms, %d rows of the target", lane, number + 1, ms(step.end_ns - step.begin_ns),
              step.num_rows);
  for (const SpeculatePart& part : kSpeculateParts)
    if (step.*part.ns > 0) ImGui::Text("  %s %.3g ms", part.name, ms(step.*part.ns));
  if (!step.draft.empty()) ImGui::Text("  %zu tokens drafted, %zu accepted", step.draft.size(), step.path.size());
  std::string text;
  for (const ShownToken& token : step.emitted) text += (text.empty() ? "" : " | ") + token.text;
  if (!text.empty()) ImGui::Text("  writes %s", text.c_str());
  ImGui::EndTooltip();
}

class LaneDrawing {
 public:
  LaneDrawing(const SpeculateLane& lane, double y, std::int64_t moment_ns)
      : lane_(lane), moment_ns_(moment_ns), list_(*ImPlot::GetPlotDrawList()) {
    top_ = ImPlot::PlotToPixels(0.0, y + kHalfHeight).y;
    bottom_ = ImPlot::PlotToPixels(0.0, y - kHalfHeight).y;
  }

  void draw() {
    const ImPlotRect limits = ImPlot::GetPlotLimits();
    const auto begin = first_ending_after(limits.X.Min);
    float drawn_until = -1e9f;
    for (std::size_t i = begin; i < lane_.steps.size(); ++i) {
      const SpeculateStep& step = *lane_.steps[i];
      if (ms(step.begin_ns) > limits.X.Max) break;
      // One of the steps that share a pixel is enough.
      const float end = x_of(step.end_ns);
      if (end - drawn_until < 1.0f) continue;
      drawn_until = end;
      draw_step(step);
    }
  }

  // The step under a moment of the time axis.
  std::optional<std::size_t> step_at(double time_ms) const {
    const std::size_t step = first_ending_after(time_ms);
    if (step == lane_.steps.size() || time_ms < 0.0) return std::nullopt;
    return step;
  }

 private:
  static float x_of(std::int64_t ns) { return ImPlot::PlotToPixels(ms(ns), 0.0).x; }

  std::size_t first_ending_after(double time_ms) const {
    const auto found = std::partition_point(lane_.steps.begin(), lane_.steps.end(),
                                            [&](const auto& step) { return ms(step->end_ns) <= time_ms; });
    return static_cast<std::size_t>(found - lane_.steps.begin());
  }

  void draw_step(const SpeculateStep& step) {
    const float alpha = step.end_ns <= moment_ns_ ? 1.0f : kFaint;
    const float begin = x_of(step.begin_ns);
    std::int64_t at = step.begin_ns;
    for (const SpeculatePart& part : kSpeculateParts) {
      const std::int64_t ns = step.*part.ns;
      const float left = x_of(at);
      const float right = x_of(at + ns);
      if (right - left >= kPixelsMin) list_.AddRectFilled({left, top_}, {right, bottom_}, to_u32(*part.colour, alpha));
      at += ns;
    }
    // Where steps are wide enough, a gap between them and the number of tokens that they gave.
    const float end = x_of(step.end_ns);
    const float em = ImGui::GetFontSize();
    if (end - begin < 0.4f * em) return;
    list_.AddRectFilled({end - 1.0f, top_}, {end, bottom_}, ImGui::GetColorU32(ImGuiCol_WindowBg));
    char text[16];
    std::snprintf(text, sizeof text, "+%zu", step.emitted.size());
    const ImVec2 size = ImGui::CalcTextSize(text);
    const ImVec2 place{(begin + end - size.x) / 2.0f, (top_ + bottom_ - size.y) / 2.0f};
    const float left = ImPlot::GetPlotPos().x, right = left + ImPlot::GetPlotSize().x;
    const bool fits = size.x + 0.4f * em <= end - begin && place.x >= left && place.x + size.x <= right;
    if (step.emitted.empty() || !fits) return;
    list_.AddRectFilled({place.x - 0.15f * em, place.y}, {place.x + size.x + 0.15f * em, place.y + size.y},
                        ImGui::GetColorU32(ImGuiCol_WindowBg, 0.75f * alpha), 0.2f * em);
    list_.AddText(place, ImGui::GetColorU32(ImGuiCol_Text, alpha), text);
  }

  const SpeculateLane& lane_;
  std::int64_t moment_ns_;
  ImDrawList& list_;
  float top_ = 0.0f;
  float bottom_ = 0.0f;
};

}  // namespace

LanesView draw_lanes(const SpeculateSnapshot& snapshot, std::int64_t moment_ns, bool fit, float height_px) {
  LanesView view;
  constexpr ImPlotFlags kFlags =
      ImPlotFlags_NoLegend | ImPlotFlags_NoMenus | ImPlotFlags_NoMouseText | ImPlotFlags_NoTitle;
  const double whole_ms = std::max({ms(snapshot.plain.time_ns()), ms(snapshot.speculation.time_ns()), 1e-3});
  if (!ImPlot::BeginPlot("##lanes", {-1.0f, height_px}, kFlags)) return view;
  constexpr std::array kLanes{kPlainLane, kSpeculationLane};
  constexpr std::array kNames{"plain", "speculation"};
  ImPlot::SetupAxis(ImAxis_X1, "time of the lane (ms)");
  ImPlot::SetupAxis(ImAxis_Y1, nullptr,
                    ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks | ImPlotAxisFlags_Lock);
  ImPlot::SetupAxisTicks(ImAxis_Y1, kLanes.data(), static_cast<int>(kLanes.size()), kNames.data());
  ImPlot::SetupAxisLimits(ImAxis_Y1, -0.5, 1.5, ImPlotCond_Always);
  ImPlot::SetupAxisLimits(ImAxis_X1, 0.0, whole_ms * 1.02, fit ? ImPlotCond_Always : ImPlotCond_Once);
  ImPlot::SetupAxisLimitsConstraints(ImAxis_X1, -0.1 * whole_ms, 2.0 * whole_ms);
  LaneDrawing plain(snapshot.plain, kPlainLane, moment_ns);
  LaneDrawing speculation(snapshot.speculation, kSpeculationLane, moment_ns);
  ImPlot::PushPlotClipRect();
  plain.draw();
  speculation.draw();
  ImPlot::PopPlotClipRect();
  double line_ms = ms(moment_ns);
  bool line_is_hovered = false;
  if (ImPlot::DragLineX(0, &line_ms, ImGui::GetStyleColorVec4(ImGuiCol_Text), 1.0f, ImPlotDragToolFlags_None, nullptr,
                        &line_is_hovered))
    view.asked_ns = static_cast<std::int64_t>(std::max(line_ms, 0.0) * kNsPerMs);
  if (ImPlot::IsPlotHovered() && !line_is_hovered) {
    const ImPlotPoint mouse = ImPlot::GetPlotMousePos();
    for (const bool is_plain : {true, false}) {
      if (std::abs(mouse.y - (is_plain ? kPlainLane : kSpeculationLane)) > kHalfHeight) continue;
      const auto step = (is_plain ? plain : speculation).step_at(mouse.x);
      if (!step) continue;
      const SpeculateLane& lane = is_plain ? snapshot.plain : snapshot.speculation;
      show_step(is_plain ? "plain" : "speculation", *step, *lane.steps[*step]);
      if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !was_dragged()) view.asked_ns = lane.steps[*step]->end_ns;
    }
  }
  ImPlot::EndPlot();
  return view;
}

}  // namespace draftproof
