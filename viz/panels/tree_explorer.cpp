#include "viz/panels/tree_explorer.hpp"

#include <algorithm>
#include <string>

#include "studies/lab/text_pair.hpp"
#include "viz/panels/colours.hpp"
#include "viz/panels/tree_explorer_view.hpp"

namespace draftproof {
namespace {

constexpr double kSecondsPerStep = 0.8;

void draw_whole_number(Controls& controls, const char* label, std::int32_t& value, std::int32_t least,
                       std::int32_t most, const char* tooltip) {
  std::int64_t edited = value;
  if (controls.slider(label, edited, least, most, tooltip)) value = static_cast<std::int32_t>(edited);
}

void draw_summary(const TreeExplorerSnapshot& snapshot) {
  ImGui::TextWrapped("%s: %d nodes", printable_line(snapshot.pair).c_str(), static_cast<int>(snapshot.nodes.size()));
  ImGui::TextWrapped("Nodes that a draw passes: %.2f of the draft's (the sum of products of q), %.2f of the target's.",
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
    controls.text("prompt", settings.prompt, "What the draft continues; press Enter.");
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
  if (controls.slider("seed", seed, 0, 999, "Of the synthetic pair, of drafts that are drawn, and of the coins u."))
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
      colour = step.accepted  ? to_vec4(palette::kAccepted)
               : is_judgement ? to_vec4(palette::kRecovered)
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
  draw_tree(controls, *snapshot, playback_.step, is_new);
  ImGui::EndChild();
  ImGui::SameLine();
  ImGui::BeginChild("mask", {0, upper});
  draw_mask(controls, *snapshot, is_new);
  ImGui::EndChild();
  ImGui::BeginChild("walk", {0.5f * room.x, 0});
  draw_playback(controls, *snapshot);
  ImGui::BeginChild("decisions");
  draw_walk(controls, *snapshot);
  ImGui::EndChild();
  ImGui::EndChild();
  ImGui::SameLine();
  ImGui::BeginChild("budgets");
  draw_budgets(controls, *snapshot);
  ImGui::EndChild();
  ImGui::EndChild();
}

}  // namespace draftproof
