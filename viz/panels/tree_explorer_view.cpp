#include "viz/panels/tree_explorer_view.hpp"

#include <implot.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "viz/panels/colours.hpp"

namespace draftproof {
namespace {

const PaletteColour& colour_of(NodeState state) {
  return state == NodeState::accepted   ? palette::kAccepted
         : state == NodeState::rejected ? palette::kRecovered
                                        : palette::kRejected;
}

NodeState state_of(const TreeExplorerSnapshot& snapshot, std::int64_t step, std::size_t node) {
  if (step <= 0 || snapshot.walk.empty()) return NodeState::waiting;
  const auto last = std::min<std::size_t>(static_cast<std::size_t>(step), snapshot.walk.size());
  return snapshot.walk[last - 1].states[node];
}

void show_node(const TreeExplorerNode& node, std::size_t index, NodeState state) {
  if (!ImGui::BeginTooltip()) return;
  ImGui::Text("node %d, '%s' (token %d), level %d", static_cast<int>(index), node.text.c_str(), node.token, node.depth);
  ImGui::Text("q = %.4f by the draft, p = %.4f by the target", node.q, node.p);
  ImGui::Text("along the path: product of q %.4f, of p %.4f", node.value, node.reach);
  ImGui::TextUnformatted(state == NodeState::accepted   ? "accepted"
                         : state == NodeState::rejected ? "rejected"
                                                        : "not judged");
  ImGui::EndTooltip();
}

// Nodes and edges, in the pixels of the plot that is open.
class TreeDrawing {
 public:
  TreeDrawing(const TreeExplorerSnapshot& snapshot, std::int64_t step)
      : snapshot_(snapshot), step_(step), em_(ImGui::GetFontSize()), list_(*ImPlot::GetPlotDrawList()) {
    // The rows of leaves may be closer than text is high.
    const ImVec2 a = ImPlot::PlotToPixels(0.0, 0.0);
    const ImVec2 b = ImPlot::PlotToPixels(1.0, 1.0);
    has_text_ = std::abs(b.y - a.y) > 1.5f * em_;
    text_width_ = std::abs(b.x - a.x) - 0.4f * em_;
    if (step > 0 && !snapshot.walk.empty())
      current_ = &snapshot.walk[std::min<std::size_t>(static_cast<std::size_t>(step), snapshot.walk.size()) - 1];
  }

  void draw() {
    ImPlot::PushPlotClipRect();
    const ImVec2 root = ImPlot::PlotToPixels(snapshot_.root_x, snapshot_.root_y);
    for (std::size_t i = 0; i < snapshot_.nodes.size(); ++i) draw_edge(i, root);
    list_.AddCircleFilled(root, 0.4f * em_, ImGui::GetColorU32(ImGuiCol_Text));
    if (current_ != nullptr && current_->at == kRootNode) mark_current(root);
    list_.AddText({root.x - 0.3f * em_, root.y - 1.6f * em_}, ImGui::GetColorU32(ImGuiCol_Text), "context");
    for (std::size_t i = 0; i < snapshot_.nodes.size(); ++i) draw_node(i);
    ImPlot::PopPlotClipRect();
    if (hovered_) show_node(snapshot_.nodes[*hovered_], *hovered_, state_of(snapshot_, step_, *hovered_));
  }

 private:
  ImVec2 place(std::size_t node) const {
    return ImPlot::PlotToPixels(snapshot_.nodes[node].x, snapshot_.nodes[node].y);
  }

  void draw_edge(std::size_t i, ImVec2 root) {
    const TreeExplorerNode& node = snapshot_.nodes[i];
    const ImVec2 from = node.parent == kRootNode ? root : place(static_cast<std::size_t>(node.parent));
    const NodeState state = state_of(snapshot_, step_, i);
    const float thickness = (0.06f + 0.25f * static_cast<float>(std::sqrt(node.q))) * em_;
    list_.AddLine(from, place(i), to_u32(colour_of(state), state == NodeState::waiting ? 0.45f : 0.9f), thickness);
  }

  void draw_node(std::size_t i) {
    const TreeExplorerNode& node = snapshot_.nodes[i];
    const ImVec2 at = place(i);
    const NodeState state = state_of(snapshot_, step_, i);
    const float radius = 0.38f * em_;
    list_.AddCircleFilled(at, radius, to_u32(colour_of(state)));
    if (current_ != nullptr &&
        (current_->node == static_cast<std::int32_t>(i) || current_->at == static_cast<std::int32_t>(i)))
      mark_current(at);
    if (has_text_) {
      char text[96];
      std::snprintf(text, sizeof text, "%s  q %.2f p %.2f", node.text.c_str(), node.q, node.p);
      const char* shown = text;
      if (ImGui::CalcTextSize(text).x > text_width_) shown = node.text.c_str();
      // Above the edge that goes on to the right.
      list_.AddText({at.x - 0.2f * em_, at.y - 0.45f * em_ - ImGui::GetTextLineHeight()},
                    ImGui::GetColorU32(ImGuiCol_Text), shown);
    }
    const ImVec2 mouse = ImGui::GetMousePos();
    if (ImPlot::IsPlotHovered() && std::hypot(mouse.x - at.x, mouse.y - at.y) < 0.8f * em_) hovered_ = i;
  }

  void mark_current(ImVec2 at) { list_.AddCircle(at, 0.62f * em_, to_u32(palette::kOrange), 0, 0.14f * em_); }

  const TreeExplorerSnapshot& snapshot_;
  std::int64_t step_;
  float em_;
  ImDrawList& list_;
  bool has_text_ = true;
  float text_width_ = 0.0f;
  const WalkStep* current_ = nullptr;
  std::optional<std::size_t> hovered_;
};

}  // namespace

void draw_tree(Controls& controls, const TreeExplorerSnapshot& snapshot, std::int64_t step, bool refit) {
  double deepest = 1.0;
  double lowest = 1.0;
  for (const TreeExplorerNode& node : snapshot.nodes) {
    deepest = std::max(deepest, node.x);
    lowest = std::max(lowest, node.y);
  }
  if (ImPlot::BeginPlot("##tree", {-1, -1}, ImPlotFlags_CanvasOnly)) {
    ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoDecorations,
                      ImPlotAxisFlags_NoDecorations | ImPlotAxisFlags_Invert);
    ImPlot::SetupAxesLimits(-0.25, deepest + 1.0, -0.9, lowest + 0.9, refit ? ImPlotCond_Always : ImPlotCond_Once);
    TreeDrawing(snapshot, step).draw();
    ImPlot::EndPlot();
  }
  controls.describe("tree", nullptr);
}

void draw_mask(Controls& controls, const TreeExplorerSnapshot& snapshot, bool refit) {
  const std::size_t rows = snapshot.nodes.size() + 1;
  const auto size = static_cast<double>(rows);
  if (ImPlot::BeginPlot("ancestor mask##mask", {-1, -1},
                        ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText | ImPlotFlags_Equal)) {
    ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoGridLines,
                      ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_Invert);
    ImPlot::SetupAxesLimits(0.0, size, 0.0, size, refit ? ImPlotCond_Always : ImPlotCond_Once);
    ImDrawList& list = *ImPlot::GetPlotDrawList();
    ImPlot::PushPlotClipRect();
    const ImVec2 corner = ImPlot::PlotToPixels(0.0, 0.0);
    const ImVec2 end = ImPlot::PlotToPixels(size, size);
    list.AddRect(corner, end, ImGui::GetColorU32(ImGuiCol_TextDisabled));
    const ImVec2 cell{(end.x - corner.x) / static_cast<float>(rows), (end.y - corner.y) / static_cast<float>(rows)};
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c <= r; ++c) {  // nobody attends to what stands behind
        if (!snapshot.mask[r * rows + c]) continue;
        const ImVec2 at{corner.x + cell.x * static_cast<float>(c), corner.y + cell.y * static_cast<float>(r)};
        list.AddRectFilled(at, {at.x + 0.94f * cell.x, at.y + 0.94f * cell.y},
                           to_u32(c == r ? palette::kTarget : palette::kSkyBlue));
      }
    ImPlot::PopPlotClipRect();
    if (ImPlot::IsPlotHovered() && ImGui::BeginTooltip()) {
      const ImPlotPoint mouse = ImPlot::GetPlotMousePos();
      const auto r = static_cast<std::int64_t>(std::floor(mouse.y));
      const auto c = static_cast<std::int64_t>(std::floor(mouse.x));
      const auto last = static_cast<std::int64_t>(rows);
      if (r >= 0 && c >= 0 && r < last && c < last) {
        const bool attends = snapshot.mask[static_cast<std::size_t>(r * last + c)];
        ImGui::Text("row %d %s column %d (0: the context's last token, i + 1: node i)", static_cast<int>(r),
                    attends ? "attends to" : "does not see", static_cast<int>(c));
      }
      ImGui::EndTooltip();
    }
    ImPlot::EndPlot();
  }
  controls.describe("mask", nullptr);
}

void draw_budgets(Controls& controls, const TreeExplorerSnapshot& snapshot) {
  ImPlot::PushStyleVar(ImPlotStyleVar_FitPadding, {0.04f, 0.08f});
  if (ImPlot::BeginPlot("expected tokens of a step by node budget##budgets", {-1, -1})) {
    ImPlot::SetupAxes("nodes verified", nullptr, ImPlotAxisFlags_AutoFit, ImPlotAxisFlags_AutoFit);
    ImPlot::SetupLegend(ImPlotLocation_NorthWest);
    for (std::size_t c = 0; c < snapshot.curves.size(); ++c) {
      const BudgetCurve& curve = snapshot.curves[c];
      std::vector<double> x, y, error;
      for (const BudgetPoint& point : curve.points) {
        x.push_back(point.nodes);
        y.push_back(1.0 + point.accepted);
        error.push_back(1.96 * point.standard_error.value_or(0.0));
      }
      ImPlotSpec spec;
      spec.LineColor = to_vec4(series_colour(c));
      spec.FillColor = spec.LineColor;
      spec.LineWeight = 0.12f * ImGui::GetFontSize();
      spec.Marker = curve.verifier.empty() ? ImPlotMarker_Circle : ImPlotMarker_Square;
      spec.MarkerSize = 0.22f * ImGui::GetFontSize();
      const std::string label = curve.builder + (curve.verifier.empty() ? "" : ", " + curve.verifier);
      const auto count = static_cast<int>(x.size());
      ImPlot::PlotLine(label.c_str(), x.data(), y.data(), count, spec);
      if (!curve.verifier.empty()) ImPlot::PlotErrorBars(label.c_str(), x.data(), y.data(), error.data(), count, spec);
    }
    ImPlot::EndPlot();
  }
  ImPlot::PopStyleVar();
  controls.describe("budgets", nullptr);
}

}  // namespace draftproof
