// Everything that panels draw by numbers goes through here, so that a test can read what was drawn.
#pragma once

#include <implot.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace draftproof {

using Values = std::span<const double>;

struct DrawnSeries {
  std::string kind, name;  // the name as the legend has it
  std::vector<std::vector<double>> columns;
};
// Where series are noted as they are drawn; null: nowhere.
inline std::vector<DrawnSeries>* drawn_series = nullptr;

inline void note_series(const char* kind, const std::string& name, std::initializer_list<Values> columns) {
  if (drawn_series == nullptr) return;
  DrawnSeries& series = drawn_series->emplace_back(DrawnSeries{kind, name.substr(0, name.find("##")), {}});
  for (const Values column : columns) series.columns.emplace_back(column.begin(), column.end());
}

inline void plot_line(const std::string& name, Values x, Values y, const ImPlotSpec& spec) {
  note_series("line", name, {x, y});
  ImPlot::PlotLine(name.c_str(), x.data(), y.data(), static_cast<int>(x.size()), spec);
}
inline void plot_stairs(const std::string& name, Values x, Values y, const ImPlotSpec& spec) {
  note_series("stairs", name, {x, y});
  ImPlot::PlotStairs(name.c_str(), x.data(), y.data(), static_cast<int>(x.size()), spec);
}
inline void plot_points(const std::string& name, Values x, Values y, const ImPlotSpec& spec) {
  note_series("points", name, {x, y});
  ImPlot::PlotScatter(name.c_str(), x.data(), y.data(), static_cast<int>(x.size()), spec);
}
inline void plot_bars(const std::string& name, Values x, Values y, double width, const ImPlotSpec& spec) {
  note_series("bars", name, {x, y});
  ImPlot::PlotBars(name.c_str(), x.data(), y.data(), static_cast<int>(x.size()), width, spec);
}
// `below` and `above` are lengths.
inline void plot_intervals(const std::string& name, Values x, Values y, Values below, Values above,
                           const ImPlotSpec& spec) {
  note_series("intervals", name, {x, y, below, above});
  ImPlot::PlotErrorBars(name.c_str(), x.data(), y.data(), below.data(), above.data(), static_cast<int>(x.size()), spec);
}
inline void plot_area(const std::string& name, Values x, Values low, Values high, const ImPlotSpec& spec) {
  note_series("area", name, {x, low, high});
  ImPlot::PlotShaded(name.c_str(), x.data(), low.data(), high.data(), static_cast<int>(x.size()), spec);
}
// At least a pixel wide, where there is anything of it.
inline void plot_box(const std::string& name, double left, double right, double low, double high, ImU32 colour) {
  if (!(right > left)) return;
  note_series("box", name, {{&left, 1}, {&right, 1}, {&low, 1}, {&high, 1}});
  const ImVec2 a = ImPlot::PlotToPixels(left, low), b = ImPlot::PlotToPixels(right, high);
  ImPlot::GetPlotDrawList()->AddRectFilled({a.x, std::min(a.y, b.y)}, {std::max(b.x, a.x + 1), std::max(a.y, b.y)},
                                           colour);
}
// Outside of plots: this share of the room.
inline void fill_share(const std::string& name, ImVec2 corner, ImVec2 room, double share, ImU32 colour) {
  note_series("share", name, {{&share, 1}});
  const ImVec2 end{corner.x + room.x * static_cast<float>(share), corner.y + room.y};
  ImGui::GetWindowDrawList()->AddRectFilled(corner, end, colour);
}
// Through the whole plot at one value.
inline void plot_limit(const std::string& name, double at, const ImPlotSpec& spec) {
  note_series("limit", name, {{&at, 1}});
  ImPlot::PlotInfLines(name.c_str(), &at, 1, spec);
}

}  // namespace draftproof
