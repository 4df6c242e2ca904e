#include "tests/viz/looks.hpp"

#include <imgui.h>
#include <imgui_internal.h>
#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>

#include "viz/app/drawn_shapes.hpp"

namespace draftproof::testing {
namespace {

constexpr float kSlack_px = 1.5f;
constexpr double kDecade = 10.0;

// Characters beside each other on one line.
struct TextRun {
  std::string text;
  ImRect box;
  ImRect clip;
  bool upright = false;
  bool is_cut = false;  // a character lost a part before it was drawn
  ImVec2 pen;           // behind the last character
  float size_px = 0;
  ImU32 colour = 0;
};

struct Area {
  std::vector<ImVec2> corners;
  ImU32 colour;
};

// One command: what shares a clip rectangle.
struct Part {
  ImRect clip;
  std::vector<TextRun> runs;
  std::vector<Area> areas;
};

struct Window {
  ImGuiWindow* window;  // null: of no window, as what lies over all
  std::string name;
  std::vector<Part> parts;
};

void add_character(std::vector<TextRun>& runs, const PlacedCharacter& c, const ImRect& clip) {
  const ImRect box{c.min, c.max};
  const ImVec2 next = c.upright ? ImVec2{c.pen.x, c.pen.y - c.advance_px} : ImVec2{c.pen.x + c.advance_px, c.pen.y};
  const std::string text = c.code_point < 0x80 ? std::string(1, static_cast<char>(c.code_point)) : std::string("?");
  const bool is_whole = c.is_whole && c.code_point != 0x2026 && c.code_point != 0x85;  // Dear ImGui's ellipsis
  if (!runs.empty()) {
    TextRun& run = runs.back();
    const float gap = c.upright ? run.pen.y - c.pen.y : c.pen.x - run.pen.x;
    const float off = c.upright ? run.pen.x - c.pen.x : run.pen.y - c.pen.y;
    if (run.is_cut == !is_whole && run.upright == c.upright && run.colour == c.colour &&
        std::abs(run.size_px - c.size_px) < 0.1f && std::abs(off) < 0.1f && gap > -0.3f * c.size_px &&
        gap < 0.6f * c.size_px) {
      run.text += (gap > 0.1f * c.size_px ? " " : "") + text;
      run.box.Add(box);
      run.pen = next;
      return;
    }
  }
  runs.push_back({text, box, clip, c.upright, !is_whole, next, c.size_px, c.colour});
}

std::vector<Window> windows_of(const ImDrawData& drawn) {
  std::vector<Window> windows;
  for (const ImDrawList* const list : drawn.CmdLists) {
    Window found{nullptr, list->_OwnerName != nullptr ? list->_OwnerName : "", {}};
    for (ImGuiWindow* const window : GImGui->Windows)
      if (window->DrawList == list) found.window = window;
    for (const ImDrawCmd& command : list->CmdBuffer) {
      if (command.UserCallback != nullptr || command.ElemCount == 0) continue;
      const ImVec4& clip = command.ClipRect;
      Part part{{clip.x, clip.y, clip.z, clip.w}, {}, {}};
      for_each_shape(
          *list, command,
          [&](std::span<const ImDrawVert> corners) {
            if (corners[0].col >> IM_COL32_A_SHIFT == 0 && corners[1].col >> IM_COL32_A_SHIFT == 0) return;
            Area area{{}, corners[0].col};
            for (const ImDrawVert& corner : corners)
              if (corner.col >> IM_COL32_A_SHIFT != 0) area.corners.push_back(corner.pos);
            part.areas.push_back(std::move(area));
          },
          [&](const PlacedCharacter& character) { add_character(part.runs, character, part.clip); });
      found.parts.push_back(std::move(part));
    }
    windows.push_back(std::move(found));
  }
  return windows;
}

bool is_same(const ImRect& a, const ImRect& b) {
  return std::abs(a.Min.x - b.Min.x) < 1 && std::abs(a.Min.y - b.Min.y) < 1 && std::abs(a.Max.x - b.Max.x) < 1 &&
         std::abs(a.Max.y - b.Max.y) < 1;
}

bool overlaps(ImRect a, const ImRect& b, float slack_px = kSlack_px) {
  a.ClipWithFull(b);
  return a.GetWidth() > slack_px && a.GetHeight() > slack_px;
}

// Does an edge of the area run through the rectangle?
bool runs_through(const Area& area, const ImRect& box) {
  constexpr float kStep_px = 3;
  for (std::size_t i = 0; i < area.corners.size(); ++i) {
    const ImVec2 p = area.corners[i];
    const ImVec2 q = area.corners[(i + 1) % area.corners.size()];
    const int steps = 1 + static_cast<int>(std::min(1e4f, std::hypot(q.x - p.x, q.y - p.y) / kStep_px));
    for (int s = 0; s <= steps; ++s) {
      const float t = static_cast<float>(s) / static_cast<float>(steps);
      if (box.Contains({p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)})) return true;
    }
  }
  return false;
}

// Distance of two colours as they stand on the window.
float distance(ImU32 a, ImU32 b) {
  const ImVec4 ground = ImGui::GetStyleColorVec4(ImGuiCol_WindowBg);
  const auto shown = [&](ImU32 colour) {
    const ImVec4 c = ImGui::ColorConvertU32ToFloat4(colour);
    const auto mix = [&](float over, float under) { return 255 * (c.w * over + (1 - c.w) * under); };
    return std::array{mix(c.x, ground.x), mix(c.y, ground.y), mix(c.z, ground.z)};
  };
  const auto x = shown(a), y = shown(b);
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

class PlotLooks {
 public:
  PlotLooks(ImPlotPlot& plot, const Window& window, const std::string& where, std::vector<std::string>& faults)
      : plot_(plot), window_(window), faults_(faults) {
    title_ = where + ", plot '" + (plot.HasTitle() ? plot.GetTitle() : "") + "'";
    for (const Part& part : window.parts)
      if (is_same(part.clip, plot.PlotRect))
        for (const Area& area : part.areas)
          if (!is_grid(area.colour)) data_.push_back(&area);
  }

  void look() {
    const float em = ImGui::GetFontSize();
    if (plot_.PlotRect.GetHeight() < 2.5f * em || plot_.PlotRect.GetWidth() < 4 * em)
      return say("has " + std::to_string(static_cast<int>(plot_.PlotRect.GetWidth())) + " x " +
                 std::to_string(static_cast<int>(plot_.PlotRect.GetHeight())) + " pixels to show anything in");
    if (data_.empty()) {
      if (plot_.Items.GetItemCount() > 0) say("shows nothing of its data");
      return;
    }
    look_at_axis(plot_.Axes[ImAxis_X1], "horizontal");
    look_at_axis(plot_.Axes[ImAxis_Y1], "vertical");
    if (!ImHasFlag(plot_.Flags, ImPlotFlags_NoLegend)) look_at_legend();
    look_at_colours();
    look_at_texts();
  }

 private:
  void say(const std::string& what) { faults_.push_back(title_ + " " + what); }

  bool is_grid(ImU32 colour) const {
    for (const ImAxis axis : {ImAxis_X1, ImAxis_Y1})
      if (colour == plot_.Axes[axis].ColorMaj || colour == plot_.Axes[axis].ColorMin) return true;
    return false;
  }

  void look_at_axis(const ImPlotAxis& axis, const std::string& which) {
    if (!axis.Enabled || !axis.HasTickLabels()) return;
    const bool is_vertical = axis.Vertical;
    const float low_px = is_vertical ? plot_.PlotRect.Min.y : plot_.PlotRect.Min.x;
    const float high_px = is_vertical ? plot_.PlotRect.Max.y : plot_.PlotRect.Max.x;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const Area* const area : data_)
      for (const ImVec2& corner : area->corners) {
        const float at = is_vertical ? corner.y : corner.x;
        if (at <= low_px - 1 || at >= high_px + 1) continue;
        const double value = axis.PixelsToPlot(at);
        least = std::min(least, value);
        most = std::max(most, value);
      }
    const auto text = [](double value) {
      std::ostringstream out;
      out << value;
      return out.str();
    };
    const std::string range = "from " + text(axis.Range.Min) + " to " + text(axis.Range.Max);
    if (least > most) return say("has a " + which + " axis " + range + " with no data inside");
    const std::string data = ", its data from " + text(least) + " to " + text(most);
    const bool is_log = axis.Scale == ImPlotScale_Log10;
    const double slack = 1.01;
    const double beyond = is_log ? std::max(least / axis.Range.Min, axis.Range.Max / most)
                                 : std::max(std::abs(axis.Range.Min), std::abs(axis.Range.Max)) /
                                       std::max(std::abs(least), std::abs(most));
    if (!(beyond <= kDecade * slack)) say("has a " + which + " axis " + range + data);
  }

  void look_at_legend() {
    const ImPlotLegend& legend = plot_.Items.Legend;
    if (plot_.Items.GetLegendCount() == 0) return;
    const ImRect& box = legend.Rect;
    if (!is_same(box, legend.RectClamped)) say("has a legend that is cut");
    ImRect frame = plot_.FrameRect;
    frame.Expand(1);
    if (!frame.Contains(box)) say("has a legend over its border");
    if (ImHasFlag(legend.Flags, ImPlotLegendFlags_Outside)) {
      if (overlaps(box, plot_.PlotRect)) say("has its outer legend over the plot");
      return;
    }
    if (std::ranges::any_of(data_, [&](const Area* area) { return runs_through(*area, box); }))
      say("has its legend over data");
  }

  void look_at_colours() {
    constexpr float kApart = 45;
    for (int i = 0; i < plot_.Items.GetLegendCount(); ++i)
      for (int j = i + 1; j < plot_.Items.GetLegendCount(); ++j) {
        const ImPlotItem& a = *plot_.Items.GetLegendItem(i);
        const ImPlotItem& b = *plot_.Items.GetLegendItem(j);
        if (a.Marker != b.Marker || distance(a.Color, b.Color) > kApart) continue;
        say(std::string("draws '") + plot_.Items.GetLegendLabel(i) + "' and '" + plot_.Items.GetLegendLabel(j) +
            "' alike");
      }
  }

  // Ticks, labels and title have the frame's clip rectangle.
  void look_at_texts() {
    ImRect inside = plot_.PlotRect;
    inside.Expand(-1);
    for (const Part& part : window_.parts)
      for (const TextRun& run : part.runs)
        if (is_same(part.clip, plot_.FrameRect) && overlaps(run.box, inside)) say("has '" + run.text + "' over data");
  }

  ImPlotPlot& plot_;
  const Window& window_;
  std::vector<std::string>& faults_;
  std::string title_;
  std::vector<const Area*> data_;
};

bool is_wholly_shown(const ImPlotPlot& plot, const Window& window) {
  ImRect seen = window.window->InnerClipRect;
  seen.Expand(1);
  return seen.Contains(plot.FrameRect);
}

bool is_in_field(const TextRun& run, const Controls* controls) {
  return controls != nullptr && std::ranges::any_of(controls->all(), [&](const auto& control) {
           ImRect field{control.second.min, control.second.max};
           field.Expand(2);
           return control.second.is_field && field.Contains(run.box);
         });
}

using Seen = std::pair<ImVec2, std::string>;  // where it begins

// Rows of a table are lines of it, in whatever order their cells were drawn.
std::string in_lines(std::vector<Seen> seen) {
  constexpr float kLine_px = 3;
  std::ranges::stable_sort(seen, {}, [](const Seen& run) { return run.first.y; });
  std::string lines;
  for (auto begin = seen.begin(); begin != seen.end();) {
    const auto end =
        std::find_if(begin, seen.end(), [&](const Seen& run) { return run.first.y > begin->first.y + kLine_px; });
    std::stable_sort(begin, end, [](const Seen& a, const Seen& b) { return a.first.x < b.first.x; });
    for (; begin != end; ++begin) lines += begin->second + (std::next(begin) == end ? "\n" : " ");
  }
  return lines;
}

void look_at_texts(const Window& window, const Controls* controls, Looks& looks, std::vector<Seen>& all) {
  const bool scrolls_down = window.window != nullptr && window.window->ScrollMax.y > 0;
  const bool has_tabs = window.name.find("DockSpace_") != std::string::npos;  // whose titles Dear ImGui may shorten
  const bool scrolls_right = window.window != nullptr && window.window->ScrollMax.x > 0;
  std::vector<const TextRun*> runs;
  for (const Part& part : window.parts)
    for (const TextRun& run : part.runs) {
      ImRect seen = run.box;
      seen.ClipWithFull(part.clip);
      if (seen.GetWidth() <= 0 || seen.GetHeight() <= 0) {
        if (!scrolls_down && !scrolls_right && !has_tabs)
          looks.faults.push_back(window.name + ": '" + run.text + "' is not seen");
        continue;
      }
      ++looks.texts;
      looks.text += run.text + "\n";
      all.emplace_back(ImVec2{run.box.Min.x, run.pen.y}, run.text);
      runs.push_back(&run);
      if (is_in_field(run, controls)) continue;
      const bool is_wide = run.box.Min.x < run.clip.Min.x - kSlack_px || run.box.Max.x > run.clip.Max.x + kSlack_px;
      const bool is_high = run.box.Min.y < run.clip.Min.y - kSlack_px || run.box.Max.y > run.clip.Max.y + kSlack_px;
      if ((is_wide && !scrolls_right) || (is_high && !scrolls_down) ||
          (run.is_cut && !scrolls_right && !scrolls_down && !has_tabs))
        looks.faults.push_back(window.name + ": '" + run.text + "' is cut");
    }
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t j = i + 1; j < runs.size(); ++j) {
      ImRect a = runs[i]->box, b = runs[j]->box;
      a.ClipWithFull(runs[i]->clip);
      b.ClipWithFull(runs[j]->clip);
      if (overlaps(a, b))
        looks.faults.push_back(window.name + ": '" + runs[i]->text + "' over '" + runs[j]->text + "'");
    }
}

}  // namespace

Looks looks_of_frame(const std::function<void()>& draw, const Controls* controls) {
  ImPool<ImPlotPlot>& plots = GImPlot->Plots;
  for (int i = 0; i < plots.GetBufSize(); ++i) plots.GetByIndex(i)->FrameRect = ImRect();  // of plots that are gone
  draw();
  Looks looks;
  std::vector<Seen> seen;
  const std::vector<Window> windows = windows_of(*ImGui::GetDrawData());
  for (const Window& window : windows) {
    look_at_texts(window, controls, looks, seen);
    if (window.window == nullptr) continue;
    for (int i = 0; i < plots.GetBufSize(); ++i) {
      ImPlotPlot& plot = *plots.GetByIndex(i);
      const bool is_here = plot.FrameRect.GetWidth() > 0 && std::ranges::any_of(window.parts, [&](const Part& p) {
                             return is_same(p.clip, plot.FrameRect);
                           });
      if (!is_here || !is_wholly_shown(plot, window)) continue;
      ++looks.plots;
      PlotLooks(plot, window, window.name, looks.faults).look();
    }
  }
  looks.lines = in_lines(std::move(seen));
  std::ranges::sort(looks.faults);
  const auto doubles = std::ranges::unique(looks.faults);
  looks.faults.erase(doubles.begin(), doubles.end());
  return looks;
}

}  // namespace draftproof::testing
