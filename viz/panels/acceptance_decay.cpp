#include "viz/panels/acceptance_decay.hpp"

#include <implot.h>

#include <algorithm>
#include <array>

#include "sim/import/read_acceptance.hpp"
#include "sim/import/speculate_table.hpp"
#include "viz/panels/colours.hpp"
#include "viz/panels/plot_style.hpp"

namespace draftproof {
namespace {

constexpr std::array kVerbs{"demo", "generate", "speculate"};
constexpr std::array kEndings{".log", ".txt", ".prom", ".csv", ".jsonl", ".json"};

ImPlotSpec line_of(std::size_t curve, bool has_markers = true) {
  ImPlotSpec spec;
  spec.LineColor = to_vec4(series_colour(curve));
  spec.FillColor = spec.LineColor;
  spec.LineWeight = 0.16f * ImGui::GetFontSize();
  if (has_markers) spec.Marker = ImPlotMarker_Circle;
  spec.MarkerSize = 0.25f * ImGui::GetFontSize();
  return spec;
}

std::string label_of(const std::string& source, std::size_t curve) {
  return printable_line(source) + "##" + std::to_string(curve);
}

// Numbers of a source, in the colour of its curve.
void draw_curve_text(Controls& controls, const DecayCurve& curve, std::size_t index) {
  if (curve.error) {
    ImGui::TextWrapped("%s", printable_line(curve.error->what()).c_str());
    return;
  }
  ImGui::PushStyleColor(ImGuiCol_Text, text_colour_of(series_colour(index)));
  if (curve.name != curve.source)
    ImGui::TextUnformatted(printable_line(curve.name.substr(curve.source.size() + 2)).c_str());
  ImGui::Text("best K = %d, speedup %.2f; pays below c = %.2f", curve.best_k, curve.best_speedup, curve.pays_below);
  ImGui::PopStyleColor();
  if (curve.notes.empty()) return;
  ImGui::SameLine();
  ImGui::TextDisabled("(?)");
  std::string notes;
  for (const std::string& note : curve.notes) notes += (notes.empty() ? "" : "\n") + printable_line(note);
  controls.describe(("notes " + std::to_string(index + 1)).c_str(), notes.c_str());
}

// Columns as ImPlot takes them.
struct Columns {
  std::vector<double> x, y, below, above;  // below and above: to the ends of the interval
  bool has_intervals = false;

  void add(double at, const DecayValue& value) {
    x.push_back(at);
    y.push_back(value.value);
    below.push_back(value.low ? value.value - *value.low : 0.0);
    above.push_back(value.high ? *value.high - value.value : 0.0);
    has_intervals |= value.low.has_value();
  }
  // Points behind the first `known` are extrapolated, and fainter.
  void plot(const std::string& label, std::size_t curve, std::size_t known) const {
    const ImPlotSpec spec = line_of(curve);
    if (known > 0 && known < x.size()) {
      ImPlotSpec faint = spec;
      faint.LineColor.w = faint.FillColor.w = 0.45f;
      plot_line(label, Values(x).subspan(known - 1), Values(y).subspan(known - 1), faint);
    }
    const std::size_t shown = std::min(known, x.size());
    plot_line(label, Values(x).first(shown), Values(y).first(shown), spec);
    if (!has_intervals) return;
    ImPlotSpec bars = spec;
    bars.Size = 0.35f * ImGui::GetFontSize();
    plot_intervals(label, x, y, below, above, bars);
  }
};

void setup_positions(std::int32_t drafts_max, double from) {
  ImPlot::SetupAxisLimits(ImAxis_X1, from, drafts_max + 0.4, ImPlotCond_Always);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
  std::vector<double> ticks;
  const int step = drafts_max > 16 ? 4 : drafts_max > 8 ? 2 : 1;
  for (int k = from < 0.5 ? 0 : 1; k <= drafts_max; k += step) ticks.push_back(k);
  ImPlot::SetupAxisTicks(ImAxis_X1, ticks.data(), static_cast<int>(ticks.size()));
}

}  // namespace

bool AcceptanceDecayPanel::open(const OpenedResult& result) {
  const bool is_result = std::ranges::find(kVerbs, result.verb) != kVerbs.end();
  if (!is_result && (!result.verb.empty() || std::ranges::find(kEndings, result.extension()) == kEndings.end()))
    return false;
  if (!is_result && !holds_acceptance(result.file)) return false;
  if (result.verb == "speculate") {
    acceptances_of_speculate(result.document, result.file);
  } else {
    read_acceptance(result.file, {settings().name, settings().rates});  // throws what is wrong with it
  }
  AcceptanceDecaySettings with_file = settings();
  if (std::ranges::find(with_file.sources, result.file) == with_file.sources.end())
    with_file.sources.push_back(result.file);
  set(with_file);
  return true;
}

void AcceptanceDecayPanel::draw_controls(Controls& controls, AcceptanceDecaySettings& settings,
                                         const AcceptanceDecaySnapshot* snapshot) {
  controls.slider("draft cost", settings.draft_cost, {0.001, 1.0, true, "%.3f"},
                  "c, the time of one draft token over that of a target step: speedup(K) = E(K) / (1 + d K c).");
  std::int64_t drafts_max = settings.drafts_max;
  if (controls.slider("longest draft", drafts_max, 1, 16, "K_max, the most draft tokens of a step that are looked at."))
    settings.drafts_max = static_cast<std::int32_t>(drafts_max);
  controls.toggle("conditional", conditional_,
                  "a_i = P(draft i stands, given those before it), instead of the survival s_i = a_1 ... a_i.");
  controls.toggle("tokens per step", tokens_, "E(K) = 1 + d (s_1 + ... + s_K), instead of the speedup.");
  ImGui::Separator();
  draw_sources(controls, settings, snapshot);
}

void AcceptanceDecayPanel::draw_sources(Controls& controls, AcceptanceDecaySettings& settings,
                                        const AcceptanceDecaySnapshot* snapshot) {
  controls.remember("sources", settings.sources);
  std::size_t removed = settings.sources.size();
  for (std::size_t i = 0; i < settings.sources.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::SmallButton("x")) removed = i;
    controls.describe(("remove " + std::to_string(i + 1)).c_str(), "Takes this source away.");
    ImGui::SameLine();
    ImGui::TextUnformatted(printable_line(settings.sources[i]).c_str());
    for (std::size_t c = 0; snapshot != nullptr && c < snapshot->curves.size(); ++c)
      if (snapshot->curves[c].source == settings.sources[i]) draw_curve_text(controls, snapshot->curves[c], c);
    ImGui::PopID();
  }
  if (removed < settings.sources.size() && settings.sources.size() > 1)
    settings.sources.erase(settings.sources.begin() + static_cast<std::ptrdiff_t>(removed));
  ImGui::Spacing();
  if (controls.text("add", added_,
                    "A server's log or metrics, a table of rates, the folder of a demo, drafter:NAME, or an acceptance "
                    "model as constant:0.8; press Enter.") &&
      !added_.empty()) {
    if (std::ranges::find(settings.sources, added_) == settings.sources.end()) settings.sources.push_back(added_);
    added_.clear();
  }
}

void AcceptanceDecayPanel::draw_rates(Controls& controls, const AcceptanceDecaySnapshot& snapshot, ImVec2 size) const {
  const char* const title = conditional_ ? "conditional: P(draft i | those before it)##rates"
                                         : "unconditional: P(drafts 1..i), the survival##rates";
  if (ImPlot::BeginPlot(title, size)) {
    ImPlot::SetupAxes("draft position i", "probability");
    setup_positions(snapshot.settings.drafts_max, 0.6);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0.0, 1.03, ImPlotCond_Once);
    const bool is_narrow = size.x < 26 * ImGui::GetFontSize();
    ImPlot::SetupLegend(ImPlotLocation_North, ImPlotLegendFlags_Outside |
                                                  (is_narrow ? ImPlotLegendFlags_None : ImPlotLegendFlags_Horizontal));
    for (std::size_t c = 0; c < snapshot.curves.size(); ++c) {
      const DecayCurve& curve = snapshot.curves[c];
      if (curve.error) continue;
      const std::vector<DecayValue>& values = conditional_ ? curve.conditional : curve.unconditional;
      Columns columns;
      for (std::size_t i = 0; i < values.size(); ++i) columns.add(static_cast<double>(i + 1), values[i]);
      columns.plot(label_of(curve.name, c), c, static_cast<std::size_t>(std::max(1, curve.positions_known)));
    }
    ImPlot::EndPlot();
  }
  controls.describe("rates", nullptr);
}

void AcceptanceDecayPanel::draw_speedup(Controls& controls, const AcceptanceDecaySnapshot& snapshot,
                                        ImVec2 size) const {
  ImPlot::PushStyleVar(ImPlotStyleVar_FitPadding, {0.0f, 0.08f});
  if (ImPlot::BeginPlot(tokens_ ? "tokens per step, E(K)##speedup" : "speedup over plain decoding##speedup", size,
                        ImPlotFlags_NoLegend)) {
    ImPlot::SetupAxes("drafts K", tokens_ ? "tokens per target step" : "speedup", 0, ImPlotAxisFlags_AutoFit);
    setup_positions(snapshot.settings.drafts_max, -0.4);
    for (std::size_t c = 0; c < snapshot.curves.size(); ++c) {
      const DecayCurve& curve = snapshot.curves[c];
      if (curve.error) continue;
      const std::vector<DecayValue>& values = tokens_ ? curve.tokens_per_step : curve.speedup;
      Columns columns;
      for (std::size_t k = 0; k < values.size(); ++k) columns.add(static_cast<double>(k), values[k]);
      columns.plot(label_of(curve.name, c), c, static_cast<std::size_t>(curve.positions_known) + 1);
      const double best_x = curve.best_k;
      const double best_y = values[static_cast<std::size_t>(curve.best_k)].value;
      ImPlotSpec ring = line_of(c);
      ring.Marker = ImPlotMarker_Circle;
      ring.MarkerSize = 0.5f * ImGui::GetFontSize();
      ring.FillAlpha = 0.0f;
      plot_points(label_of(curve.name, c), {&best_x, 1}, {&best_y, 1}, ring);
    }
    ImPlot::EndPlot();
  }
  ImPlot::PopStyleVar();
  controls.describe("speedup", nullptr);
}

void AcceptanceDecayPanel::draw_best(Controls& controls, const AcceptanceDecaySnapshot& snapshot, ImVec2 size) const {
  if (ImPlot::BeginPlot("best K by draft cost (line: c)##best", size, ImPlotFlags_NoLegend)) {
    ImPlot::SetupAxes("draft cost c (in target steps)", "best K");
    LogExtent costs;
    costs.add(snapshot.costs);
    costs.add(snapshot.settings.draft_cost);
    setup_log_axis(ImAxis_X1, costs, ImPlotCond_Once);
    ImPlot::SetupAxisLimits(ImAxis_Y1, -0.3, snapshot.settings.drafts_max + 0.5, ImPlotCond_Always);
    for (std::size_t c = 0; c < snapshot.curves.size(); ++c) {
      const DecayCurve& curve = snapshot.curves[c];
      if (curve.error) continue;
      // Curves that fall together stay visible.
      std::vector<double> best(curve.best_k_by_cost.begin(), curve.best_k_by_cost.end());
      for (double& k : best) k += 0.05 * static_cast<double>(c);
      plot_stairs(label_of(curve.name, c), snapshot.costs, best, line_of(c, false));
    }
    ImPlotSpec here;
    here.LineColor = ImGui::GetStyleColorVec4(ImGuiCol_Text);
    here.LineWeight = 0.1f * ImGui::GetFontSize();
    plot_limit("draft cost", snapshot.settings.draft_cost, here);
    ImPlot::EndPlot();
  }
  controls.describe("best", nullptr);
}

void AcceptanceDecayPanel::draw_body(Controls& controls, AcceptanceDecaySettings& settings,
                                     const AcceptanceDecaySnapshot* snapshot) {
  const float em = ImGui::GetFontSize();
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const bool is_wide = space.x > 45 * em;
  ImGui::BeginChild("controls", {is_wide ? 19 * em : 0.0f, is_wide ? 0.0f : 14 * em});
  draw_controls(controls, settings, snapshot);
  ImGui::EndChild();
  if (snapshot == nullptr) return;
  if (is_wide) ImGui::SameLine();
  ImGui::BeginChild("plots");
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool is_narrow = room.x < 28 * em;  // one below the other
  const ImVec2 gap = ImGui::GetStyle().ItemSpacing;
  const float height = is_narrow ? 20 * em : (room.y - gap.y) / 2;
  with_caption("A draft counts only if all before it were accepted. Faint points are extrapolated.", {0, height},
               [&](ImVec2 size) { draw_rates(controls, *snapshot, size); });
  const float left = is_narrow ? room.x : 0.58f * room.x;
  with_caption("Rings mark the best K; one draft more or less costs little there.", {left, height},
               [&](ImVec2 size) { draw_speedup(controls, *snapshot, size); });
  if (!is_narrow) ImGui::SameLine();
  with_caption("The more a draft costs, the shorter the best chain.",
               {is_narrow ? left : room.x - left - gap.x, height},
               [&](ImVec2 size) { draw_best(controls, *snapshot, size); });
  ImGui::EndChild();
}

}  // namespace draftproof
