#include "viz/panels/heads.hpp"

#include <implot.h>

#include <algorithm>
#include <filesystem>

#include "engine/heads/head_files.hpp"
#include "engine/model/shipped_model.hpp"
#include "viz/panels/head_drafts_view.hpp"
#include "viz/panels/plot_style.hpp"

namespace draftproof {
namespace {

HeadsSettings standard_heads_settings() {
  HeadsSettings settings;
  settings.per_work = 1;
  std::error_code ignored;
  if (has_shipped_model() && std::filesystem::exists(shipped_head_path(), ignored)) settings.head = shipped_head_path();
  return settings;
}

// Points with their intervals.
struct Points {
  std::vector<double> x, y, below, above;

  void add(double at, double value, double low, double high) {
    x.push_back(at);
    y.push_back(value);
    below.push_back(value - low);
    above.push_back(high - value);
  }
  void plot(const std::string& name, const PaletteColour& colour) const {
    plot_line(name, x, y, line_with_markers(colour));
    ImPlotSpec bars = line_of(colour);
    bars.Size = 0.35f * ImGui::GetFontSize();
    plot_intervals(name, x, y, below, above, bars);
  }
};

void setup_slots(int first, int last) {
  ImPlot::SetupAxisLimits(ImAxis_X1, first - 0.4, std::max(first, last) + 0.5, ImPlotCond_Always);
  std::vector<double> ticks;
  const int step = last > 16 ? 4 : last > 8 ? 2 : 1;
  for (int slot = first; slot <= std::max(first, last); slot += step) ticks.push_back(slot);
  ImPlot::SetupAxisTicks(ImAxis_X1, ticks.data(), static_cast<int>(ticks.size()));
  ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
}

}  // namespace

HeadsPanel::HeadsPanel() : SnapshotPanel(standard_heads_settings()) {}

bool HeadsPanel::open(const OpenedResult& result) {
  if (result.extension() != ".gguf" || !is_head(result.file)) return false;
  HeadsSettings of_file = settings();
  of_file.head = result.file;
  of_file.shown_prompt = of_file.shown_step = 1;
  set(of_file);
  return true;
}

void HeadsPanel::draw_settings(Controls& controls, HeadsSettings& settings) {
  const HeadsSettings before = settings;
  controls.text("head", settings.head,
                "PATH of a head: a folder or GGUF file (EAGLE, MTP, DFlash, Medusa); head@8:PATH rounds it to 8 bits; "
                "press Enter.");
  controls.text("model", settings.model,
                "The head's target: smollm2, a GGUF file or a Hugging Face folder; press Enter.");
  controls.text(
      "prompts", settings.prompts,
      "Lines {\"work\": ..., \"prompt\": ...}; empty: the project's forty of code, prose, question and editing.");
  controls.slider("prompts of each work", settings.per_work, 0, 10, "How many of each kind of work are run; 0: all.");
  controls.slider("tokens", settings.max_tokens, 1, 256, "Tokens of an output at most.");
  std::int64_t k = settings.num_speculative_tokens;
  if (controls.slider("K", k, 0, 16, "K, tokens of a draft; 0: as many as the head drafts at once or was trained for."))
    settings.num_speculative_tokens = static_cast<int>(k);
  if (k == 0) {
    ImGui::SameLine();
    ImGui::TextDisabled("0: the head's own");
  }
  controls.slider(
      "temperature", settings.temperature, {0, 2},
      "T in p = softmax(logits / T); 0 is greedy decoding, whose drafts are the head's most probable tokens.");
  if (!(settings == before)) settings.shown_prompt = settings.shown_step = 1;
}

void HeadsPanel::draw_summary(const HeadsSnapshot& snapshot) {
  ImGui::Separator();
  ImGui::Text("%s, K = %d%s; %zu of %lld prompts", snapshot.family.c_str(), snapshot.num_speculative_tokens,
              snapshot.settings.num_speculative_tokens == 0 ? ", its own" : "", snapshot.prompts.size(),
              static_cast<long long>(snapshot.prompts_asked));
  if (!ImGui::BeginTable("works", 3, ImGuiTableFlags_SizingStretchProp)) return;
  for (const char* const column : {"work", "acceptance length", "tokens / step"}) ImGui::TableSetupColumn(column);
  ImGui::TableHeadersRow();
  for (const HeadsWork& work : snapshot.works) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(printable_line(work.name).c_str());
    ImGui::TableNextColumn();
    const auto length = [](bool is_known, double value) {
      if (is_known)
        ImGui::Text("%.2f", value);
      else
        ImGui::TextDisabled("-");
    };
    length(work.metrics.counts.drafts > 0, work.metrics.acceptance_length);
    ImGui::TableNextColumn();
    length(work.metrics.counts.steps > 0, work.metrics.tokens_per_step);
  }
  ImGui::EndTable();
  ImGui::PushTextWrapPos(0.0f);
  ImGui::TextDisabled("The length counts steps with a draft only, tokens per step all target steps.");
  ImGui::PopTextWrapPos();
}

void HeadsPanel::draw_acceptance(Controls& controls, const HeadsSnapshot& snapshot, ImVec2 size) {
  if (ImPlot::BeginPlot("acceptance by slot and work##acceptance", size)) {
    ImPlot::SetupAxes("slot", "accepted, if reached");
    setup_slots(1, snapshot.num_speculative_tokens);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0.0, 1.03, ImPlotCond_Once);
    ImPlot::SetupLegend(ImPlotLocation_North, ImPlotLegendFlags_Horizontal | ImPlotLegendFlags_Outside);
    for (std::size_t w = 0; w < snapshot.works.size(); ++w) {
      Points points;
      for (std::size_t i = 0; i < snapshot.works[w].slots.size(); ++i)
        if (const SlotRate& slot = snapshot.works[w].slots[i]; slot.reached > 0)
          points.add(static_cast<double>(i + 1) + 0.06 * (static_cast<double>(w) - 2.0), slot.rate, slot.interval.low,
                     slot.interval.high);
      points.plot(printable_line(snapshot.works[w].name), series_colour(w));
    }
    ImPlot::EndPlot();
  }
  controls.describe("acceptance", "Accepted drafts over reached ones, by slot, with 95 % intervals.");
}

void HeadsPanel::plot_drift(const HeadsSnapshot& snapshot, ImVec2 plot) const {
  const char* const title =
      relative_l2_ ? "drift: relative L2 of the state##drift" : "drift: cosine of the state##drift";
  if (ImPlot::BeginPlot(title, plot)) {
    ImPlot::SetupAxes("slot drafted from the state", relative_l2_ ? "relative L2" : "cosine", 0,
                      relative_l2_ ? ImPlotAxisFlags_AutoFit : 0);
    setup_slots(2, snapshot.num_speculative_tokens);
    if (!relative_l2_) ImPlot::SetupAxisLimits(ImAxis_Y1, 0.0, 1.05, ImPlotCond_Once);
    ImPlot::SetupLegend(ImPlotLocation_North, ImPlotLegendFlags_Horizontal | ImPlotLegendFlags_Outside);
    Points target, own;
    for (const SlotDrift& drift : snapshot.drift) {
      const DriftSummary& of_target = relative_l2_ ? drift.target_relative_l2 : drift.target_cosine;
      const DriftSummary& of_own = relative_l2_ ? drift.own_relative_l2 : drift.own_cosine;
      target.add(drift.slot - 0.04, of_target.mean, of_target.p10, of_target.p90);
      own.add(drift.slot + 0.04, of_own.mean, of_own.p10, of_own.p90);
    }
    target.plot("to the target's", palette::kTarget);
    own.plot("to its own", palette::kDraft);
    ImPlot::EndPlot();
  }
}

void HeadsPanel::draw_drift(Controls& controls, const HeadsSnapshot& snapshot, ImVec2 size) {
  ImGui::BeginChild("drift", size);
  if (snapshot.drafts_in_parallel) {
    ImGui::TextWrapped("%s drafts all slots at once: no state goes on from slot to slot, and none drifts.",
                       snapshot.family.c_str());
    ImGui::EndChild();
    return;
  }
  controls.toggle("relative L2", relative_l2_, "|s - t| / |t| of the two states, instead of their cosine.");
  with_caption("The head goes on from its own guess: the state drifts slot by slot.", {},
               [&](ImVec2 plot) { plot_drift(snapshot, plot); });
  controls.describe("drift",
                    "State that a slot is drafted from against the one made of the target's features, and against the "
                    "head's own behind the target's states; bars: 10 to 90 % of the steps.");
  ImGui::EndChild();
}

void HeadsPanel::plot_reliability(const HeadsSnapshot& snapshot, const Reliability& shown, ImVec2 plot) {
  char title[96];
  std::snprintf(title, sizeof title, "ECE %.3f, n = %lld##reliability", shown.ece, static_cast<long long>(shown.count));
  if (ImPlot::BeginPlot(title, plot, ImPlotFlags_NoLegend)) {
    ImPlot::SetupAxes(snapshot.has_confidence_head ? "confidence head" : "largest probability", "accepted");
    ImPlot::SetupAxisLimits(ImAxis_X1, 0.0, 1.0, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0.0, 1.03, ImPlotCond_Once);
    const std::array diagonal{0.0, 1.0};
    plot_line("calibrated", diagonal, diagonal, line_of(palette::kGrey));
    Points points;
    for (const ReliabilityBin& bin : shown.bins)
      if (bin.count > 0) points.add(bin.mean_confidence, bin.rate, bin.interval.low, bin.interval.high);
    points.plot("accepted", palette::kAccepted);
    ImPlot::EndPlot();
  }
}

void HeadsPanel::draw_reliability(Controls& controls, const HeadsSnapshot& snapshot, ImVec2 size) {
  ImGui::BeginChild("reliability", size);
  const std::int64_t slots = std::ssize(snapshot.reliability) - 1;
  slot_ = std::min(slot_, slots);
  if (slots > 0) controls.slider("slot", slot_, 0, slots, "The slot whose confidences are shown; 0: all.");
  const Reliability& shown = snapshot.reliability[static_cast<std::size_t>(slot_)];
  with_caption("A calibrated head lies on the diagonal.", {},
               [&](ImVec2 plot) { plot_reliability(snapshot, shown, plot); });
  controls.describe("reliability",
                    "Slots that were reached, in ten bins by the head's confidence; ECE = sum of a bin's share times "
                    "|accepted - mean confidence|.");
  ImGui::EndChild();
}

std::optional<HeadsPanel::Choice> HeadsPanel::draw_drafts(Controls& controls, const HeadsSnapshot& snapshot) {
  const HeadsPrompt* const prompt = snapshot.shown_prompt();
  if (prompt == nullptr) return std::nullopt;
  Choice choice{snapshot.settings.shown_prompt, snapshot.settings.shown_step};
  std::optional<Choice> chosen;
  ImGui::BeginDisabled(state().busy);  // another prompt is chosen from what was measured
  if (controls.slider("prompt", choice.prompt, 1, std::ssize(snapshot.prompts), "The prompt whose drafts are shown."))
    chosen = Choice{choice.prompt, 1};
  next_control(16);
  if (!prompt->steps.empty() &&
      controls.slider("step", choice.step, 1, std::ssize(prompt->steps), "The draft whose slots are taken apart."))
    chosen = choice;
  ImGui::EndDisabled();
  next_control(20);
  ImGui::TextDisabled("%s: %s", printable_line(prompt->work).c_str(), prompt->text.c_str());
  const HeadStep* const step = snapshot.shown_step();
  if (step == nullptr) {
    ImGui::TextDisabled("No step had a draft.");
    return chosen;
  }
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float below = std::min(11.5f * em, 0.5f * room.y);
  ImGui::BeginChild("blocks", {0, room.y - below - ImGui::GetStyle().ItemSpacing.y}, ImGuiChildFlags_Borders,
                    ImGuiWindowFlags_HorizontalScrollbar);
  if (const auto clicked = draw_head_drafts(controls, *prompt, choice.step, scrolled_to_ != step);
      clicked && !state().busy)
    chosen = Choice{choice.prompt, *clicked};
  scrolled_to_ = step;
  ImGui::EndChild();
  controls.describe("drafts", nullptr);
  ImGui::BeginChild("slots", {0, 0});
  draw_head_step(*step);
  ImGui::EndChild();
  controls.describe("slots", nullptr);
  return chosen;
}

// A draft that was measured is shown at once.
void HeadsPanel::choose(const HeadsSnapshot& snapshot, HeadsSettings& settings, const Choice& choice) {
  settings.shown_prompt = choice.prompt;
  settings.shown_step = choice.step;
  HeadsSnapshot chosen = snapshot;
  chosen.settings.shown_prompt = choice.prompt;
  chosen.settings.shown_step = choice.step;
  if (chosen.settings == settings) show(std::move(chosen));
}

void HeadsPanel::draw_body(Controls& controls, HeadsSettings& settings, const HeadsSnapshot* snapshot) {
  const float em = ImGui::GetFontSize();
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const bool is_wide = space.x > 60 * em;
  ImGui::BeginChild("controls", {is_wide ? 21 * em : 0.0f, is_wide ? 0.0f : 16 * em});
  draw_settings(controls, settings);
  if (snapshot != nullptr && !snapshot->works.empty()) draw_summary(*snapshot);
  ImGui::EndChild();
  if (snapshot == nullptr) return;
  if (is_wide) ImGui::SameLine();
  std::optional<Choice> chosen;
  ImGui::BeginChild("measured");
  if (snapshot->works.empty()) {
    ImGui::TextWrapped("%s", snapshot->note.c_str());
  } else {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const ImVec2 spacing = ImGui::GetStyle().ItemSpacing;
    const ImVec2 plot{(room.x - 2 * spacing.x) / 3, std::max(14 * em, 0.48f * room.y)};
    with_caption("Acceptance falls with the slot; bars are 95 % intervals over prompts.", plot,
                 [&](ImVec2 size) { draw_acceptance(controls, *snapshot, size); });
    ImGui::SameLine();
    draw_drift(controls, *snapshot, plot);
    ImGui::SameLine();
    draw_reliability(controls, *snapshot, plot);
    chosen = draw_drafts(controls, *snapshot);
  }
  ImGui::EndChild();
  if (chosen) choose(*snapshot, settings, *chosen);
}

}  // namespace draftproof
