#include "viz/panels/speculate.hpp"

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "viz/panels/colours.hpp"
#include "viz/panels/controls.hpp"
#include "viz/panels/draft_tree_view.hpp"
#include "viz/panels/plot_style.hpp"
#include "viz/panels/speculate_lanes_view.hpp"

namespace draftproof {
namespace {

// How fast the moment moves.
struct Pace {
  const char* name;
  double pace;
};
constexpr std::array kPaces{Pace{"live", 0.0},        Pace{"1 x", 1.0},      Pace{"1/4 x", 0.25},
                            Pace{"1/16 x", 1.0 / 16}, Pace{"1/100 x", 0.01}, Pace{"1/1000 x", 0.001}};

void swatch(const PaletteColour& colour, const char* name) {
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + 0.2f * em}, {at.x + 0.7f * em, at.y + 0.9f * em},
                                            to_u32(colour));
  ImGui::Dummy({0.7f * em, em});
  ImGui::SameLine(0.0f, 0.3f * em);
  ImGui::TextUnformatted(name);
}

// Text before the output: the prompt, or its end.
std::string lead_of(const SpeculateSettings& settings) {
  constexpr std::size_t kBytesMax = 500;
  std::size_t begin = settings.prompt.size() - std::min(settings.prompt.size(), kBytesMax);
  while (begin < settings.prompt.size() && (static_cast<unsigned char>(settings.prompt[begin]) & 0xC0) == 0x80) ++begin;
  return (begin > 0 ? "..." : "") + printable(settings.prompt.substr(begin)) + (settings.chat ? "\n\n" : "");
}

// A number that is read from afar.
void large(const PaletteColour& colour, const char* text) {
  ImGui::PushFont(nullptr, ImGui::GetStyle().FontSizeBase * 1.5f);
  swatch(colour, text);
  ImGui::PopFont();
}

}  // namespace

SpeculatePanel::SpeculatePanel(const std::string& model)
    : SnapshotPanel(speculate_presets(model).front().settings),
      pace_(kPaces.front().name),
      shown_settings_(settings()) {}

PanelInfo SpeculatePanel::info() const {
  return {"speculate", "Speculate", "What does a model do under speculation, step by step, and is it faster?"};
}

bool SpeculatePanel::open(const OpenedResult& result) {
  if (result.verb != "demo") return false;
  DemoSettings demo = speculate_settings_of_demo(result);
  set(demo.settings);
  demo_ = std::move(demo);
  note_ = "running the demo again";
  return true;
}

// Whether a demo that was opened gives the text that stands in its result.
void SpeculatePanel::check_demo(const SpeculateSnapshot& snapshot) {
  if (!demo_ || !(snapshot.settings == demo_->settings) || !snapshot.speculation.ended) return;
  note_ = text_in_json(snapshot.speculation) == demo_->expected_text
              ? "The text is that of the demo, byte for byte."
              : "The text is NOT that of the demo: it was made by another model or another version.";
  demo_.reset();
}

// The end of the step of the speculative lane before or after the moment.
void SpeculatePanel::take_step(const SpeculateSnapshot& snapshot, int direction) {
  const auto shown = static_cast<std::int64_t>(view_.speculation_steps);
  const std::int64_t next =
      std::clamp<std::int64_t>(shown + direction, 0, static_cast<std::int64_t>(snapshot.speculation.steps.size()));
  playback_.stop_at(next == 0 ? 0 : snapshot.speculation.steps[static_cast<std::size_t>(next) - 1]->end_ns);
}

void SpeculatePanel::draw_playback(Controls& controls, const SpeculateSnapshot* snapshot) {
  const bool can_step = snapshot != nullptr;
  if (controls.button(playback_.paused ? "Run" : "Pause",
                      "Stops the shown moment, or lets it go on; the engine itself "
                      "computes on behind it."))
    playback_.paused = !playback_.paused;
  ImGui::SameLine();
  if (controls.button("Replay", "Shows the run from its beginning.") && can_step) {
    playback_.restart();
    if (playback_.pace == 0.0) {
      pace_ = kPaces[2].name;
      playback_.pace = kPaces[2].pace;
    }
  }
  ImGui::SameLine();
  if (controls.button("Step back", "To the end of the speculative step before this one.") && can_step)
    take_step(*snapshot, -1);
  ImGui::SameLine();
  if (controls.button("Step", "To the end of the next speculative step.") && can_step) take_step(*snapshot, +1);
  next_control(14);
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Pace& pace : kPaces) names.emplace_back(pace.name);
    return names;
  }();
  if (controls.choice("pace", pace_, kNames,
                      "Live: as fast as the engine computes; else the clock of the lanes to that of the wall."))
    for (const Pace& pace : kPaces)
      if (pace_ == pace.name) playback_.pace = pace.pace;
  next_control(18);
  ImGui::TextDisabled("time");
  for (const SpeculatePart& part : kSpeculateParts) {
    next_control(5);
    swatch(*part.colour, part.name);
  }
  next_control(5);
  ImGui::TextDisabled("   tokens");
  for (const TokenOrigin origin : {TokenOrigin::accepted, TokenOrigin::recovered, TokenOrigin::bonus}) {
    next_control(6);
    swatch(*origin_colour(origin), std::string(name_of(origin)).c_str());
  }
}

// For a toy target tokens per step count, for a model its clock.
void SpeculatePanel::draw_large_numbers(const SpeculateSnapshot& snapshot) const {
  if (is_toy(snapshot.settings.model)) {
    large(palette::kTarget, "plain 1 token a step");
    const auto steps = view_.speculation_steps;
    const double per_step =
        steps == 0 ? 0.0 : acceptance_metrics({&snapshot.speculation.steps[steps - 1]->acceptance, 1}).tokens_per_step;
    next_control(22);
    large(palette::kAccepted, number("speculation %.3g tokens a step", per_step).c_str());
    next_control(24);
    ImGui::BeginGroup();
    ImGui::TextUnformatted("The target is a toy, an n-gram model: its passes");
    ImGui::TextUnformatted("cost next to nothing, and its times mean nothing.");
    ImGui::EndGroup();
    return;
  }
  const auto rate = [](const std::string& lane, double tokens_per_second) {
    return lane + number(tokens_per_second < 1000.0 ? " %.3g tokens/s" : " %.0f tokens/s", tokens_per_second);
  };
  large(palette::kTarget, rate("plain", view_.plain_tokens_per_second).c_str());
  next_control(22);
  large(palette::kAccepted, rate("speculation", view_.speculation_tokens_per_second).c_str());
  if (view_.plain_tokens_per_second > 0.0 && view_.speculation_tokens_per_second > 0.0) {
    next_control(16);
    const double ratio = view_.speculation_tokens_per_second / view_.plain_tokens_per_second;
    large(ratio >= 1.0 ? palette::kAccepted : palette::kRecovered, number("%.2f times as fast", ratio).c_str());
  }
}

void SpeculatePanel::draw_counters(const SpeculateSnapshot& snapshot) const {
  draw_large_numbers(snapshot);
  next_control(22);
  ImGui::BeginGroup();
  if (view_.speculation_steps > 0) {
    const SpeculateStep& last = *snapshot.speculation.steps[view_.speculation_steps - 1];
    ImGui::Text("%zu steps: %.2f tokens per step, acceptance length %.2f", view_.speculation_steps,
                acceptance_metrics({&last.acceptance, 1}).tokens_per_step, last.acceptance.acceptance_length());
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip))
      ImGui::SetTooltip(
          "%lld tokens after %.1f ms of the lane. Tokens per step counts all target steps of an output;\n"
          "acceptance length those with a draft only, as vLLM's does.\n"
          "acceptance_rate_p50 %.3f, overhead_ratio %.3f (drafting / verification),\n"
          "effective_speedup %.2f (tokens per step / (1 + overhead ratio)), tokens_per_row %.2f",
          static_cast<long long>(last.tokens), ms(last.end_ns), last.acceptance_rate_p50, last.overhead_ratio,
          last.effective_speedup, last.tokens_per_row);
  } else {
    ImGui::TextDisabled("no step yet");
  }
  if (!note_.empty()) {
    ImGui::TextUnformatted(note_.c_str());
  } else if (!snapshot.agree && snapshot.must_agree) {
    ImGui::TextColored(text_colour_of(palette::kRecovered), "The texts differ, and must not.");
  } else if (snapshot.agree) {
    ImGui::TextDisabled(snapshot.must_agree ? "Both lanes write the same tokens, as they must."
                                            : "Both lanes have written the same tokens so far.");
  } else {
    ImGui::TextDisabled("Two draws from one distribution: the texts differ.");
  }
  ImGui::EndGroup();
}

void SpeculatePanel::draw_text(Controls& controls, const char* name, TokenText& text, const SpeculateLane& lane,
                               std::size_t steps, ImVec2 size) {
  if (shown_settings_.outputs > 1) {
    ImGui::TextDisabled("%s, output 1 of %lld", name, static_cast<long long>(shown_settings_.outputs));
  } else {
    ImGui::TextDisabled("%s", name);
  }
  ImGui::BeginChild(name, {size.x, size.y - ImGui::GetTextLineHeightWithSpacing()}, ImGuiChildFlags_Borders);
  ImGui::PushFont(nullptr, ImGui::GetStyle().FontSizeBase * 1.15f);
  const auto step = text.draw(lead_of(shown_settings_), lane, steps);
  ImGui::PopFont();
  ImGui::EndChild();
  controls.describe(name, nullptr);
  if (step && ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    playback_.stop_at(lane.steps[static_cast<std::size_t>(*step)]->end_ns);
}

// The last step that is shown; where nobody asked for a certain one, the last that had a draft.
std::size_t SpeculatePanel::number_of_step(const SpeculateSnapshot& snapshot) const {
  const auto& steps = snapshot.speculation.steps;
  std::size_t number = view_.speculation_steps;
  while (!playback_.paused && number > 1 && steps[number - 1]->draft.empty()) --number;
  return number;
}

void SpeculatePanel::draw_step(Controls& controls, const SpeculateSnapshot& snapshot, ImVec2 size) const {
  ImGui::BeginChild("draft", size, ImGuiChildFlags_Borders, ImGuiWindowFlags_HorizontalScrollbar);
  if (const std::size_t number = number_of_step(snapshot); number == 0) {
    ImGui::TextDisabled("The draft of the current step stands here.");
  } else {
    const SpeculateStep& step = *snapshot.speculation.steps[number - 1];
    if (step.draft.empty()) {
      ImGui::TextDisabled("step %zu: without a draft", number);
    } else {
      ImGui::TextDisabled("step %zu: %zu drafted, %zu accepted", number, step.draft.size(), step.path.size());
    }
    draw_draft_tree(step);
  }
  ImGui::EndChild();
  controls.describe("draft", nullptr);
}

void SpeculatePanel::draw_acceptance(Controls& controls, const SpeculateSnapshot& snapshot, ImVec2 size) const {
  static const AcceptanceCounts kNone;
  const AcceptanceCounts& counts =
      view_.speculation_steps > 0 ? snapshot.speculation.steps[view_.speculation_steps - 1]->acceptance : kNone;
  std::vector<double> positions, given, of_all;
  const std::size_t k =
      snapshot.settings.tree.empty() ? static_cast<std::size_t>(snapshot.settings.num_speculative_tokens) : 0;
  for (std::size_t j = 0; j < std::max(counts.reached.size(), k); ++j) positions.push_back(static_cast<double>(j + 1));
  for (std::size_t j = 0; j < counts.reached.size(); ++j) {
    const auto accepted = static_cast<double>(counts.accepted[j]);
    given.push_back(counts.reached[j] > 0 ? accepted / static_cast<double>(counts.reached[j]) : 0.0);
    of_all.push_back(counts.drafts > 0 ? accepted / static_cast<double>(counts.drafts) : 0.0);
  }
  if (!ImPlot::BeginPlot("##acceptance", size, ImPlotFlags_NoMenus | ImPlotFlags_NoMouseText)) return;
  const double last = std::max<double>(static_cast<double>(positions.size()), 1.0);
  ImPlot::SetupAxis(ImAxis_X1, "draft position j");
  ImPlot::SetupAxis(ImAxis_Y1, "accepted");
  ImPlot::SetupAxisLimits(ImAxis_X1, 0.4, last + 0.6, ImPlotCond_Always);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0.0, 1.05, ImPlotCond_Always);
  constexpr std::size_t kLabelsMax = 16;
  if (!positions.empty()) {
    std::vector<double> ticks;
    for (std::size_t j = 0; j < positions.size(); j += (positions.size() - 1) / kLabelsMax + 1)
      ticks.push_back(positions[j]);
    ImPlot::SetupAxisTicks(ImAxis_X1, ticks.data(), static_cast<int>(ticks.size()));
  }
  ImPlot::SetupLegend(ImPlotLocation_North, ImPlotLegendFlags_Outside | ImPlotLegendFlags_Horizontal);
  const auto bars = [&](const char* name, const std::vector<double>& values, double shift,
                        const PaletteColour& colour) {
    ImPlotSpec spec;
    spec.FillColor = to_vec4(colour);
    spec.LineColor = to_vec4(colour);
    std::vector<double> at = positions;
    for (double& x : at) x += shift;
    plot_bars(name, Values(at).first(values.size()), values, 0.36, spec);
  };
  bars("if reached", given, -0.19, palette::kAccepted);
  bars("of all drafts", of_all, 0.19, palette::kTarget);
  if (ImPlot::IsPlotHovered()) {
    const auto j = static_cast<std::size_t>(std::max(ImPlot::GetPlotMousePos().x + 0.5, 0.0));
    if (j >= 1 && j <= counts.reached.size() && ImGui::BeginTooltip()) {
      ImGui::Text("position %zu: reached %lld times, accepted %lld times, of %lld drafts", j,
                  static_cast<long long>(counts.reached[j - 1]), static_cast<long long>(counts.accepted[j - 1]),
                  static_cast<long long>(counts.drafts));
      ImGui::EndTooltip();
    }
  }
  ImPlot::EndPlot();
  controls.describe("acceptance by position", nullptr);
}

void SpeculatePanel::draw_body(Controls& controls, SpeculateSettings& settings, const SpeculateSnapshot* snapshot) {
  draw_settings(controls, settings);
  draw_playback(controls, snapshot);
  if (snapshot == nullptr) {
    ImGui::TextDisabled("The first step is under way.");
    return;
  }
  if (!(snapshot->settings == shown_settings_)) {
    shown_settings_ = snapshot->settings;
    playback_.restart();
    if (!demo_) note_.clear();
  }
  check_demo(*snapshot);
  playback_.advance(static_cast<double>(ImGui::GetIO().DeltaTime), known_until_ns(*snapshot));
  view_ = view_at(*snapshot, playback_.moment_ns());
  const std::int64_t end_ns = std::max(snapshot->plain.time_ns(), snapshot->speculation.time_ns());
  const bool has_changed = end_ns != fitted_ns_;
  fitted_ns_ = end_ns;

  const float em = ImGui::GetFontSize();
  draw_counters(*snapshot);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 spacing = ImGui::GetStyle().ItemSpacing;
  const float lanes_height = std::clamp(0.28f * room.y, 6 * em, 14 * em);
  const float height = std::max(room.y - lanes_height - spacing.y, 6 * em);
  // Where there is no room for two things above each other, one is behind the other.
  is_low_ = height < 23 * em;
  const ImVec2 left{0.55f * room.x, is_low_ ? height : (height - spacing.y) / 2.0f};
  const float right = room.x - left.x - spacing.x;
  ImGui::BeginGroup();
  if (!is_low_ || shows_plain_text_)
    draw_text(controls, "without speculation", plain_text_, snapshot->plain, view_.plain_steps, left);
  if (!is_low_ || !shows_plain_text_)
    draw_text(controls, "with speculation", speculation_text_, snapshot->speculation, view_.speculation_steps, left);
  ImGui::EndGroup();
  ImGui::SameLine();
  ImGui::BeginGroup();
  const float acceptance = is_low_ ? height : std::clamp(0.42f * height, 11 * em, 16 * em);
  if (!is_low_ || !shows_acceptance_)
    draw_step(controls, *snapshot, {right, is_low_ ? height : height - acceptance - spacing.y});
  if (!is_low_ || shows_acceptance_)
    with_caption("Blue falls with the position: a draft counts only if all before it were accepted.",
                 {right, acceptance}, [&](ImVec2 size) { draw_acceptance(controls, *snapshot, size); });
  ImGui::EndGroup();
  const LanesView lanes = draw_lanes(*snapshot, playback_.moment_ns(), has_changed, lanes_height);
  controls.describe("lanes", nullptr);
  if (lanes.asked_ns) playback_.stop_at(std::min(*lanes.asked_ns, known_until_ns(*snapshot)));
}

}  // namespace draftproof
