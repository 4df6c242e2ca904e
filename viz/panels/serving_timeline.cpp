#include "viz/panels/serving_timeline.hpp"

#include <implot.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/strict_number.hpp"
#include "sim/toml.hpp"
#include "viz/panels/plot_style.hpp"
#include "viz/panels/timeline_plots.hpp"

namespace draftproof {
namespace {

std::string stem_of(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

std::string text_of(const std::vector<double>& loads) {
  std::ostringstream text;
  for (std::size_t i = 0; i < loads.size(); ++i) text << (i == 0 ? "" : ",") << loads[i];
  return text.str();
}

// Positive numbers of "4,8,16"; nothing where there is anything else.
std::optional<std::vector<double>> loads_of(const std::string& text) {
  std::vector<double> loads;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto load = read_number(word);
    if (!load || *load <= 0.0) return std::nullopt;
    loads.push_back(*load);
  }
  return loads;
}

}  // namespace

bool ServingTimelinePanel::open(const OpenedResult& result) {
  if (result.verb == "sim") {
    set(settings_of_simulation(result.document, result.file));
    return true;
  }
  if (result.extension() != ".toml") return false;
  const TomlValue file = read_toml(result.file);
  if (file.find("workload") == nullptr && file.find("grid") == nullptr) return false;
  set(settings_of_scenario(result.file));
  return true;
}

void ServingTimelinePanel::draw_controls(Controls& controls, ServingTimelineSettings& settings,
                                         const ServingTimelineSnapshot* snapshot) {
  static const std::vector<std::string> kShipped = shipped_scenarios();
  std::vector<std::string> files = kShipped;
  if (std::ranges::find(files, settings.scenario) == files.end()) files.push_back(settings.scenario);
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(stem_of(file));
  std::string name = stem_of(settings.scenario);
  if (controls.choice("scenario", name, names, "Server, workload and policies: a TOML file; drop another one here.")) {
    settings.scenario = files[static_cast<std::size_t>(std::ranges::find(names, name) - names.begin())];
    settings.changes.clear();
    settings.upper.clear();
    settings.lower.clear();
  }
  controls.slider("load", settings.load, {0, 128, false, settings.load > 0 ? "%.0f" : "the scenario's"},
                  "lambda: requests per second on average, or at a time with closed arrivals; 0: the scenario's own.");
  controls.slider("requests", settings.requests, 20, 4000, "Requests of the workload; more smooth the curves.");
  if (snapshot != nullptr && !snapshot->timelines.empty()) {
    std::vector<std::string> policies;
    for (const PolicyTimeline& timeline : snapshot->timelines) policies.push_back(timeline.policy);
    std::string upper = snapshot->upper()->policy;
    if (controls.choice("above", upper, policies, "The policy of the upper lane of steps.")) settings.upper = upper;
    if (snapshot->lower() != nullptr) {
      std::string lower = snapshot->lower()->policy;
      if (controls.choice("below", lower, policies,
                          "The policy of the lower lane, whose requests and KV blocks are shown."))
        settings.lower = lower;
    }
  }
  std::string loads = text_of(settings.loads);
  if (controls.text("loads", loads, "Loads of the curves, as 4,8,16; empty: none."))
    if (const auto numbers = loads_of(loads)) settings.loads = *numbers;
  if (controls.button("new seed", "The same workload with other random numbers."))
    settings.seed = settings.seed.value_or(snapshot != nullptr ? snapshot->scenario.seed : 1) + 1;
}

void ServingTimelinePanel::draw_view_controls(Controls& controls, const ServingTimelineSnapshot& snapshot) {
  const double end_s = static_cast<double>(snapshot.upper()->steps.end_ns()) * 1e-9;
  constexpr double kClose_s = 0.4;
  if (to_s_ <= from_s_) {
    from_s_ = 0.4 * end_s;
    to_s_ = std::min(end_s, from_s_ + kClose_s);
  }
  const double middle = 0.5 * (from_s_ + to_s_);
  if (controls.button("whole run", "All steps; boxes of many steps show the shares of their time.")) {
    from_s_ = 0.0;
    to_s_ = end_s;
  }
  ImGui::SameLine();
  if (controls.button("single steps", "Some 0.4 s: each step with its parts in their order.")) {
    from_s_ = std::max(0.0, middle - 0.5 * kClose_s);
    to_s_ = from_s_ + kClose_s;
  }
  ImGui::SameLine();
  if (controls.button("earlier", "Back by most of what is seen.")) {
    const double step = std::min(from_s_, 0.8 * (to_s_ - from_s_));
    from_s_ -= step;
    to_s_ -= step;
  }
  ImGui::SameLine();
  if (controls.button("later", "On by most of what is seen.")) {
    const double step = 0.8 * (to_s_ - from_s_);
    from_s_ += step;
    to_s_ += step;
  }
  ImGui::SameLine();
  controls.toggle("committed blocks", with_committed_,
                  "Off: KV blocks of drafts and block tails alone, which are few.");
  ImGui::SameLine();
  ImGui::TextDisabled("wheel: zoom, drag: pan");
}

void ServingTimelinePanel::draw_time(Controls& controls, const ServingTimelineSnapshot& snapshot) {
  draw_view_controls(controls, snapshot);
  const float em = ImGui::GetFontSize();
  const float gap = ImGui::GetStyle().ItemSpacing.y;
  const float room = std::max(52 * em, ImGui::GetContentRegionAvail().y - 3 * gap);
  const TimeView view{from_s_, to_s_, static_cast<double>(snapshot.upper()->steps.end_ns()) * 1e-9};
  const PolicyTimeline& followed = snapshot.lower() != nullptr ? *snapshot.lower() : *snapshot.upper();
  ImPlot::BeginAlignedPlots("time");
  with_caption("Where a step's time goes: speculation adds drafting; prompts delay every request.", {-1, 0.27f * room},
               [&](ImVec2 size) { plot_steps(controls, snapshot, view, size); });
  with_caption("One bar per request: how long it waits, and how long it decodes.", {-1, 0.28f * room},
               [&](ImVec2 size) { plot_requests(followed, view, size); });
  with_caption(
      "Memory that holds tokens, and memory that drafts and block tails only borrow.", {-1, 0.24f * room},
      [&](ImVec2 size) { plot_blocks(followed, snapshot.scenario.scheduler.num_blocks, with_committed_, view, size); });
  with_caption("The policy that finishes requests sooner has fewer running.", {-1, 0.21f * room},
               [&](ImVec2 size) { plot_queue(snapshot, view, size); });
  ImPlot::EndAlignedPlots();
}

void ServingTimelinePanel::draw_body(Controls& controls, ServingTimelineSettings& settings,
                                     const ServingTimelineSnapshot* snapshot) {
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool wide = room.x > 60 * em;
  const float side = wide ? std::min(30 * em, 0.36f * room.x) : 0;
  if (ImGui::BeginChild("controls", wide ? ImVec2{side, 0} : ImVec2{0, std::min(0.5f * room.y, 24 * em)})) {
    draw_controls(controls, settings, snapshot);
    if (snapshot != nullptr) {
      ImGui::TextDisabled("%s", printable_line(snapshot->scenario.server).c_str());
      draw_policies(controls, *snapshot, 1.6f * em * static_cast<float>(snapshot->reports.size() + 1));
      with_caption("Colours as in the table: speculation halves the time per token until the load fills the steps.",
                   {-1, std::max(33 * em, ImGui::GetContentRegionAvail().y)},
                   [&](ImVec2 size) { plot_loads(*snapshot, size); });
    }
  }
  ImGui::EndChild();
  if (wide) ImGui::SameLine();
  if (ImGui::BeginChild("time") && snapshot != nullptr) {
    if (snapshot->timelines.empty()) {
      ImGui::TextWrapped("A static batch decodes without arrivals: it has figures, but no timeline.");
    } else {
      draw_time(controls, *snapshot);
    }
  }
  ImGui::EndChild();
}

}  // namespace draftproof
