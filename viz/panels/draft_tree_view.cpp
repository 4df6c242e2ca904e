#include "viz/panels/draft_tree_view.hpp"

#include <imgui.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "viz/panels/colours.hpp"
#include "viz/panels/token_text.hpp"

namespace draftproof {
namespace {

// In multiples of the font's size.
constexpr float kBoxWidth = 5.6f;
constexpr float kBoxHeight = 2.3f;
constexpr float kGapX = 0.5f;
constexpr float kGapY = 0.7f;
constexpr float kSmall = 0.78f;
constexpr float kTint = 0.4f;
constexpr float kFaint = 0.45f;

// Nodes of the draft, and behind them the token that follows the accepted ones.
struct Layout {
  std::vector<std::int32_t> parents;
  std::vector<std::int32_t> depths;
  std::vector<float> columns;  // of the middle of a box
  float num_columns = 1.0f;
  std::int32_t depth_max = 0;
};

// A node stands over the middle of its leaves; leaves stand side by side, in the order of their parents' children.
Layout layout_of(const SpeculateStep& step) {
  Layout layout;
  for (const ShownNode& node : step.draft) {
    layout.parents.push_back(node.parent);
    layout.depths.push_back(node.depth);
  }
  if (!step.emitted.empty() && step.emitted.back().origin != TokenOrigin::accepted) {
    const std::int32_t parent = step.path.empty() ? kRootNode : step.path.back();
    layout.parents.push_back(parent);
    layout.depths.push_back(parent == kRootNode ? 1 : layout.depths[static_cast<std::size_t>(parent)] + 1);
  }
  const std::size_t count = layout.parents.size();
  std::vector<float> leaves(count, 0.0f);
  float all = 0.0f;
  for (std::size_t i = count; i-- > 0;) {
    leaves[i] = std::max(leaves[i], 1.0f);
    (layout.parents[i] == kRootNode ? all : leaves[static_cast<std::size_t>(layout.parents[i])]) += leaves[i];
    layout.depth_max = std::max(layout.depth_max, layout.depths[i]);
  }
  std::vector<float> next(count, 0.0f);  // where a node's next child begins
  float next_of_root = 0.0f;
  for (std::size_t i = 0; i < count; ++i) {
    float& begin = layout.parents[i] == kRootNode ? next_of_root : next[static_cast<std::size_t>(layout.parents[i])];
    next[i] = begin;
    layout.columns.push_back(begin + leaves[i] / 2.0f);
    begin += leaves[i];
  }
  layout.num_columns = std::max(all, 1.0f);
  return layout;
}

void show_node(const ShownNode& node, bool is_judged) {
  if (!ImGui::BeginTooltip()) return;
  ImGui::Text("\"%s\" (token %d), position %d", node.text.c_str(), node.token, node.depth);
  if (node.has_draft_probability)
    ImGui::Text("q = %.4f: the drafter drew it with this probability", static_cast<double>(node.draft_probability));
  ImGui::Text("p = %.4f: of the target with the request's parameters", static_cast<double>(node.target_probability));
  ImGui::Text("%.4f: of the target's own softmax, temperature 1", static_cast<double>(node.model_probability));
  ImGui::TextUnformatted(node.accepted ? "accepted"
                         : is_judged   ? "rejected"
                                       : "not reached: a token before it was rejected");
  ImGui::EndTooltip();
}

class TreeDrawing {
 public:
  TreeDrawing(const SpeculateStep& step, const Layout& layout)
      : step_(step),
        layout_(layout),
        em_(ImGui::GetFontSize()),
        origin_(ImGui::GetCursorScreenPos()),
        list_(*ImGui::GetWindowDrawList()) {
    const float width = layout.num_columns * (kBoxWidth + kGapX) * em_;
    left_ = std::max(0.0f, (ImGui::GetContentRegionAvail().x - width) / 2.0f);
    last_ = step.path.empty() ? kRootNode : step.path.back();
  }

  void draw() {
    const auto count = layout_.parents.size();
    for (std::size_t i = 0; i < count; ++i) draw_link(i);
    const ImVec2 root = place(layout_.num_columns / 2.0f, 0);
    draw_box(root, "context", "", ImGui::GetColorU32(ImGuiCol_Text), 0);
    for (std::size_t i = 0; i < step_.draft.size(); ++i) draw_node(i);
    if (count > step_.draft.size()) {
      const ShownToken& token = step_.emitted.back();
      char line[32];
      std::snprintf(line, sizeof line, "p %.2f", static_cast<double>(step_.last_probability));
      const PaletteColour& colour = *origin_colour(token.origin);
      draw_box(place_of(count - 1), token.text.c_str(), line, to_u32(colour), to_u32(colour, kTint));
    }
    ImGui::Dummy({layout_.num_columns * (kBoxWidth + kGapX) * em_,
                  (static_cast<float>(layout_.depth_max) * (kBoxHeight + kGapY) + kBoxHeight) * em_});
  }

 private:
  // The middle of a box's upper edge.
  ImVec2 place(float column, std::int32_t depth) const {
    return {origin_.x + left_ + column * (kBoxWidth + kGapX) * em_,
            origin_.y + static_cast<float>(depth) * (kBoxHeight + kGapY) * em_};
  }
  ImVec2 place_of(std::size_t i) const { return place(layout_.columns[i], layout_.depths[i]); }
  bool is_judged(std::size_t i) const { return step_.draft[i].parent == last_; }

  void draw_link(std::size_t i) {
    const std::int32_t parent = layout_.parents[i];
    const ImVec2 above =
        parent == kRootNode ? place(layout_.num_columns / 2.0f, 0) : place_of(static_cast<std::size_t>(parent));
    const ImVec2 below = place_of(i);
    const bool is_accepted = i < step_.draft.size() && step_.draft[i].accepted;
    const ImU32 colour = is_accepted ? to_u32(palette::kAccepted) : to_u32(palette::kRejected, kFaint);
    list_.AddLine({above.x, above.y + kBoxHeight * em_}, below, colour, (is_accepted ? 0.18f : 0.08f) * em_);
  }

  void draw_node(std::size_t i) {
    const ShownNode& node = step_.draft[i];
    char line[48];
    if (node.has_draft_probability) {
      std::snprintf(line, sizeof line, "q %.2f  p %.2f", static_cast<double>(node.draft_probability),
                    static_cast<double>(node.target_probability));
    } else {
      std::snprintf(line, sizeof line, "p %.2f", static_cast<double>(node.target_probability));
    }
    const ImVec2 at = place_of(i);
    if (node.accepted) {
      draw_box(at, node.text.c_str(), line, to_u32(palette::kAccepted), to_u32(palette::kAccepted, kTint));
    } else if (is_judged(i)) {
      draw_box(at, node.text.c_str(), line, to_u32(palette::kRejected), to_u32(palette::kRejected, kTint));
    } else {
      draw_box(at, node.text.c_str(), line, to_u32(palette::kRejected, kFaint), 0);
    }
    const ImVec2 min{at.x - kBoxWidth / 2.0f * em_, at.y};
    const ImVec2 max{min.x + kBoxWidth * em_, at.y + kBoxHeight * em_};
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(min, max)) show_node(node, is_judged(i));
  }

  void draw_box(ImVec2 at, const char* label, const char* line, ImU32 border, ImU32 fill) {
    const ImVec2 min{at.x - kBoxWidth / 2.0f * em_, at.y};
    const ImVec2 max{min.x + kBoxWidth * em_, at.y + kBoxHeight * em_};
    if (!ImGui::IsRectVisible(min, max)) return;
    if (fill != 0) list_.AddRectFilled(min, max, fill, 0.25f * em_);
    list_.AddRect(min, max, border, 0.25f * em_, 0, 0.1f * em_);
    list_.PushClipRect(min, max, true);
    const bool is_alone = line[0] == '\0';
    add_text(at.x, min.y + (is_alone ? 0.6f : 0.12f) * em_, label, em_, ImGuiCol_Text);
    if (!is_alone) add_text(at.x, min.y + 1.25f * em_, line, kSmall * em_, ImGuiCol_Text);
    list_.PopClipRect();
  }

  void add_text(float middle_x, float y, const char* text, float size, ImGuiCol colour) {
    const float width = ImGui::GetFont()->CalcTextSizeA(size, 1e9f, 0.0f, text).x;
    // Text that is too long begins at the left edge.
    const float x = std::max(middle_x - width / 2.0f, middle_x - (kBoxWidth / 2.0f - 0.2f) * em_);
    list_.AddText(ImGui::GetFont(), size, {x, y}, ImGui::GetColorU32(colour), text);
  }

  const SpeculateStep& step_;
  const Layout& layout_;
  float em_;
  ImVec2 origin_;
  ImDrawList& list_;
  float left_ = 0.0f;
  std::int32_t last_ = kRootNode;
};

}  // namespace

void draw_draft_tree(const SpeculateStep& step) {
  const Layout layout = layout_of(step);
  TreeDrawing(step, layout).draw();
}

}  // namespace draftproof
