#include "viz/panels/tree_explorer.hpp"

#include <implot.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "studies/lab/text_pair.hpp"
#include "studies/tree/tree_explorer.hpp"
#include "viz/panels/colours.hpp"
#include "viz/panels/controls.hpp"
#include "viz/panels/plot_style.hpp"

namespace draftproof {
namespace {

// The drawings of the tree explorer: the tree, its mask, and the curves by node budget.

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
    // Below where its neighbour's label would stand in its way.
    const bool is_wide = ImGui::CalcTextSize("context").x > text_width_;
    list_.AddText({root.x - 0.3f * em_, root.y + (is_wide ? 0.5f : -1.6f) * em_}, ImGui::GetColorU32(ImGuiCol_Text),
                  "context");
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
      // Above the edge that goes on to the right, and on a ground of its own: edges to children rise through it.
      const ImVec2 corner{at.x - 0.2f * em_, at.y - 0.45f * em_ - ImGui::GetTextLineHeight()};
      const ImVec2 extent = ImGui::CalcTextSize(shown);
      list_.AddRectFilled({corner.x - 0.1f * em_, corner.y}, {corner.x + extent.x + 0.1f * em_, corner.y + extent.y},
                          ImGui::GetColorU32(ImGuiCol_WindowBg, 0.85f), 0.2f * em_);
      list_.AddText(corner, ImGui::GetColorU32(ImGuiCol_Text), shown);
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

// The tree after `step` decisions of the walk. It can be panned and zoomed; refit: the whole of it is shown again.
void draw_tree(Controls& controls, const TreeExplorerSnapshot& snapshot, std::int64_t step, bool refit, ImVec2 size) {
  double deepest = 1.0;
  double lowest = 1.0;
  for (const TreeExplorerNode& node : snapshot.nodes) {
    deepest = std::max(deepest, node.x);
    lowest = std::max(lowest, node.y);
  }
  if (ImPlot::BeginPlot("##tree", size, ImPlotFlags_CanvasOnly)) {
    ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoDecorations,
                      ImPlotAxisFlags_NoDecorations | ImPlotAxisFlags_Invert);
    ImPlot::SetupAxesLimits(-0.25, deepest + 1.0, -0.9, lowest + 0.9, refit ? ImPlotCond_Always : ImPlotCond_Once);
    TreeDrawing(snapshot, step).draw();
    ImPlot::EndPlot();
  }
  controls.describe("tree", nullptr);
}

// Who attends to whom.
void draw_mask(Controls& controls, const TreeExplorerSnapshot& snapshot, bool refit, ImVec2 size_px) {
  const std::size_t rows = snapshot.nodes.size() + 1;
  const auto size = static_cast<double>(rows);
  if (ImPlot::BeginPlot("ancestor mask##mask", size_px,
                        ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText | ImPlotFlags_Equal)) {
    ImPlot::SetupAxes("attends to (0: context)", "row", ImPlotAxisFlags_NoGridLines,
                      ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_Invert);
    ImPlot::SetupAxesLimits(0.0, size, 0.0, size, refit ? ImPlotCond_Always : ImPlotCond_Once);
    ImPlot::PushPlotClipRect();
    ImPlot::GetPlotDrawList()->AddRect(ImPlot::PlotToPixels(0.0, 0.0), ImPlot::PlotToPixels(size, size),
                                       ImGui::GetColorU32(ImGuiCol_TextDisabled));
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c <= r; ++c) {  // nobody attends to what stands behind
        if (!snapshot.mask[r * rows + c]) continue;
        const auto x = static_cast<double>(c), y = static_cast<double>(r);
        plot_box("attends", x, x + 0.94, y, y + 0.94, to_u32(c == r ? palette::kTarget : palette::kSkyBlue));
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

void draw_budgets(Controls& controls, const TreeExplorerSnapshot& snapshot, ImVec2 size) {
  ImPlot::PushStyleVar(ImPlotStyleVar_FitPadding, {0.04f, 0.08f});
  if (ImPlot::BeginPlot("expected tokens per step by node budget##budgets", size)) {
    ImPlot::SetupAxes("nodes verified", "tokens per target step", ImPlotAxisFlags_AutoFit, ImPlotAxisFlags_AutoFit);
    ImPlot::SetupLegend(ImPlotLocation_North, ImPlotLegendFlags_Outside | ImPlotLegendFlags_Horizontal);
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
      spec.LineWeight = 0.16f * ImGui::GetFontSize();
      spec.Marker = curve.verifier.empty() ? ImPlotMarker_Circle : ImPlotMarker_Square;
      spec.MarkerSize = 0.22f * ImGui::GetFontSize();
      const std::string label = curve.builder + (curve.verifier.empty() ? "" : ", " + curve.verifier);
      plot_line(label, x, y, spec);
      if (!curve.verifier.empty()) plot_intervals(label, x, y, error, error, spec);
    }
    ImPlot::EndPlot();
  }
  ImPlot::PopStyleVar();
  controls.describe("budgets", nullptr);
}

constexpr double kSecondsPerStep = 0.8;

void draw_whole_number(Controls& controls, const char* label, std::int32_t& value, std::int32_t least,
                       std::int32_t most, const char* tooltip) {
  std::int64_t edited = value;
  if (controls.slider(label, edited, least, most, tooltip)) value = static_cast<std::int32_t>(edited);
}

void draw_summary(const TreeExplorerSnapshot& snapshot) {
  ImGui::TextWrapped("%s: %d nodes", printable_line(snapshot.pair).c_str(), static_cast<int>(snapshot.nodes.size()));
  ImGui::TextWrapped(
      "Expected accepted drafts: %.2f if drafts were right as often as the drafter thinks, %.2f by the target.",
      snapshot.expected_by_draft, snapshot.expected_by_target);
  if (snapshot.comparison) {
    const ChainComparison& c = *snapshot.comparison;
    ImGui::Spacing();
    ImGui::TextUnformatted("At the same verification cost");
    ImGui::TextWrapped("chain of %d: %.2f tokens a step, %d draft passes", c.chain.nodes, 1.0 + c.chain.accepted,
                       c.chain.depth);
    ImGui::TextWrapped("tree of %d: %.2f tokens a step, %d draft passes", c.tree.nodes, 1.0 + c.tree.accepted,
                       c.tree.depth);
  }
  for (const std::string& note : snapshot.notes) ImGui::TextWrapped("%s", printable_line(note).c_str());
}

}  // namespace

void WalkPlayback::advance(double wall_s, std::int64_t length) {
  step = std::min(step, length);
  if (!playing) return;
  for (waited_s += wall_s; waited_s >= kSecondsPerStep && step < length; waited_s -= kSecondsPerStep) ++step;
  if (step >= length) playing = false;
}

void TreeExplorerPanel::draw_controls(Controls& controls, TreeExplorerSettings& settings) {
  std::vector<std::string> builders;
  for (const TreeBuilder builder : tree_builders()) builders.emplace_back(name_of(builder));
  controls.choice(
      "builder", settings.builder, builders,
      "Who chooses the nodes: a fixed shape, Sequoia's best shape for rates a_b, or the largest products of q.");
  const TreeBuilder builder = parse_tree_builder(settings.builder, "builder");
  std::vector<std::string> fitting;
  for (const VerifierChoice& choice : verifiers_for(builder)) fitting.push_back(text_of(choice));
  if (std::ranges::find(fitting, settings.verifier) == fitting.end() &&
      std::ranges::none_of(fitting, [&](const std::string& name) {
        return name.substr(0, name.find(':')) == settings.verifier.substr(0, settings.verifier.find(':'));
      }))
    settings.verifier = fitting.front();  // the one that was chosen does not take what this builder makes
  controls.choice("verifier", settings.verifier, fitting,
                  "Who accepts or rejects nodes; all of these emit exactly the target's distribution p.");
  const auto is_text = [&] { return settings.model != kSyntheticModel; };
  draw_whole_number(controls, "nodes", settings.nodes, 1, is_text() ? kTextPairNodesMax : kTreeNodesMax,
                    "n, the drafts that the target verifies in one step.");
  draw_whole_number(controls, "levels", settings.depth, 1, 12, "d, the deepest node; a chain has n levels.");
  draw_whole_number(controls, "children", settings.top_k, 1, 12, "k, the most children of a node, but of opt_tree.");
  std::string pair = is_text() ? "real" : "synthetic";
  static const std::vector<std::string> kPairs{"synthetic", "real"};
  if (controls.choice("models", pair, kPairs, "Random logits, or a language model with a drafter behind a prompt."))
    settings.model = pair == "real" ? "ngram:6" : kSyntheticModel;
  if (is_text()) {
    settings.nodes = std::min(settings.nodes, kTextPairNodesMax);
    static const std::vector<std::string> kModels{"ngram:6", "smollm2"};
    controls.choice("target", settings.model, kModels,
                    "p: an n-gram model of the system's licence texts, or SmolLM2 where it has been fetched.");
    const bool is_ngram = settings.model.starts_with("ngram");
    const std::vector<std::string> drafters =
        is_ngram ? std::vector<std::string>{"ngram:2", "ngram:3", "ngram:4"}
                 : std::vector<std::string>{"layer_skip:12", "layer_skip:10-14", "requantised:5", "requantised:3"};
    if (std::ranges::find(drafters, settings.drafter) == drafters.end()) settings.drafter = drafters[is_ngram ? 1 : 0];
    controls.choice("drafter", settings.drafter, drafters, "q: a model of lower order, or the target made cheaper.");
    controls.text("prompt", settings.prompt, "Text that the draft continues; press Enter.");
    controls.slider("temperature", settings.temperature, {0.0, 2.0, false, "%.2f"},
                    "T of both models: p is proportional to exp(logit / T).");
  } else {
    controls.slider("sharpness", settings.sharpness, {0.0, 6.0, false, "%.2f"},
                    "Standard deviation of the logits of p and q: 0 is uniform.");
    controls.slider("draft quality", settings.quality, {0.0, 1.0, false, "%.2f"},
                    "Correlation of the logits of q with those of p: at 1 q = p.");
    draw_whole_number(controls, "vocabulary", settings.vocab_size, 2, 64, "V, the number of tokens.");
  }
  std::int64_t seed = static_cast<std::int64_t>(settings.seed % 1000);
  if (controls.slider("seed", seed, 0, 999, "Seed of the synthetic pair, of drawn drafts, and of the coins u."))
    settings.seed = static_cast<std::uint64_t>(seed);
}

void TreeExplorerPanel::draw_playback(Controls& controls, const TreeExplorerSnapshot& snapshot) {
  const auto length = static_cast<std::int64_t>(snapshot.walk.size());
  const auto stop_at = [&](std::int64_t step) {
    playback_.playing = false;
    playback_.step = std::clamp<std::int64_t>(step, 0, length);
  };
  if (controls.button("|<", "Before the first decision.")) stop_at(0);
  ImGui::SameLine();
  if (controls.button("<", "One decision back.")) stop_at(playback_.step - 1);
  ImGui::SameLine();
  if (controls.button(playback_.playing ? "Pause" : "Play", "The verification walk, a decision every 0.8 s.")) {
    playback_.playing = !playback_.playing;
    playback_.waited_s = 0.0;
    if (playback_.playing && playback_.step >= length) playback_.step = 0;
  }
  ImGui::SameLine();
  if (controls.button(">", "One decision on.")) stop_at(playback_.step + 1);
  ImGui::SameLine();
  if (controls.button(">|", "After the last decision.")) stop_at(length);
  const float end_of_buttons = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x;
  if (ImGui::GetWindowWidth() - end_of_buttons > 15 * ImGui::GetFontSize()) ImGui::SameLine();
  std::int64_t step = playback_.step;
  if (controls.slider("decision", step, 0, length, "How many decisions of the verifier have been taken."))
    stop_at(step);
}

void TreeExplorerPanel::draw_walk(Controls& controls, const TreeExplorerSnapshot& snapshot) const {
  for (std::size_t i = 0; i < snapshot.walk.size(); ++i) {
    const WalkStep& step = snapshot.walk[i];
    const bool is_taken = static_cast<std::int64_t>(i) < playback_.step;
    const bool is_last = static_cast<std::int64_t>(i) + 1 == playback_.step;
    const bool is_judgement = step.kind == WalkStep::Kind::coin || step.kind == WalkStep::Kind::shares;
    ImVec4 colour = ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled);
    if (is_taken)
      colour = step.accepted  ? text_colour_of(palette::kAccepted)
               : is_judgement ? text_colour_of(palette::kRecovered)
                              : ImGui::GetStyleColorVec4(ImGuiCol_Text);
    ImGui::PushStyleColor(ImGuiCol_Text, colour);
    ImGui::TextWrapped("%s%d. %s", is_last ? "> " : "  ", static_cast<int>(i + 1), printable_line(step.text).c_str());
    ImGui::PopStyleColor();
    if (is_last && playback_.playing) ImGui::SetScrollHereY();
  }
  if (playback_.step == static_cast<std::int64_t>(snapshot.walk.size())) {
    std::string emitted = "Emitted:";
    for (const std::string& text : snapshot.emitted) emitted += " '" + printable_line(text) + "'";
    ImGui::TextWrapped("%s", emitted.c_str());
    controls.describe("emitted", nullptr);
  }
}

void TreeExplorerPanel::draw_body(Controls& controls, TreeExplorerSettings& settings,
                                  const TreeExplorerSnapshot* snapshot) {
  const float em = ImGui::GetFontSize();
  ImGui::BeginChild("controls", {19 * em, 0});
  draw_controls(controls, settings);
  if (snapshot != nullptr) {
    ImGui::Separator();
    draw_summary(*snapshot);
  }
  ImGui::EndChild();
  if (snapshot == nullptr) return;
  const auto length = static_cast<std::int64_t>(snapshot->walk.size());
  const bool is_new = snapshot != seen_;
  if (is_new) {
    // Another tree shows its outcome first; the same one, with its curves now, goes on.
    if (seen_ == nullptr || !snapshot->complete || playback_.step > length) playback_ = {length, false, 0.0};
    seen_ = snapshot;
  }
  playback_.advance(static_cast<double>(ImGui::GetIO().DeltaTime), length);

  ImGui::SameLine();
  ImGui::BeginChild("drawings");
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float upper = 0.56f * room.y;
  ImGui::BeginChild("tree", {0.66f * room.x, upper});
  with_caption("Green: accepted, orange: rejected, grey: not judged. Thick edges: the draft was sure.", {},
               [&](ImVec2 size) { draw_tree(controls, *snapshot, playback_.step, is_new, size); });
  ImGui::EndChild();
  ImGui::SameLine();
  ImGui::BeginChild("mask", {0, upper});
  with_caption("A node sees its ancestors and itself, and no sibling.", {},
               [&](ImVec2 size) { draw_mask(controls, *snapshot, is_new, size); });
  ImGui::EndChild();
  ImGui::BeginChild("walk", {0.5f * room.x, 0});
  draw_playback(controls, *snapshot);
  ImGui::BeginChild("decisions");
  draw_walk(controls, *snapshot);
  ImGui::EndChild();
  ImGui::EndChild();
  ImGui::SameLine();
  ImGui::BeginChild("budgets");
  with_caption("A chain stops gaining after a few nodes; trees go on.", {},
               [&](ImVec2 size) { draw_budgets(controls, *snapshot, size); });
  ImGui::EndChild();
  ImGui::EndChild();
}

}  // namespace draftproof
