#include "viz/panels/speedup_by_batch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/cost/engine_profile.hpp"
#include "sim/csv.hpp"
#include "sim/toml.hpp"
#include "studies/serving/speedup_by_batch.hpp"
#include "viz/panels/colours.hpp"
#include "viz/panels/controls.hpp"
#include "viz/panels/plot_style.hpp"

namespace draftproof {
namespace {

// The plots of the panel "Speedup versus batch".

// The sixth is no other blue beside that of the best draft.
const PaletteColour& colour_of(std::size_t curve) {
  return curve == 5 ? palette::kGrey : curve == 6 ? palette::kSkyBlue : series_colour(curve);
}

double highest(const SpeedupByBatchSnapshot& snapshot) {
  double high = 1.0;
  for (const SpeedupCurve& curve : snapshot.curves)
    for (const double speedup : curve.speedup) high = std::max(high, speedup);
  if (snapshot.report.points)
    for (const SpeedupPoint& point : snapshot.report.points->points) high = std::max(high, point.high);
  return high;
}

void plot_curve(const SpeedupCurve& curve, std::size_t index) {
  const PaletteColour& colour = colour_of(index);
  const bool compared = curve.kind == SpeedupCurve::Kind::compared;
  ImPlotSpec spec = line_of(colour, index == 0 ? 4.0f : 2.6f);
  if (compared || curve.kind == SpeedupCurve::Kind::tree) {
    spec.Marker = compared ? ImPlotMarker_Diamond : ImPlotMarker_Up;
    spec.MarkerSize = 0.18f * ImGui::GetFontSize();
    spec.MarkerFillColor = spec.MarkerLineColor = to_vec4(colour);
  }
  plot_line(curve.name, curve.batch, curve.speedup, spec);
}

// Annotations of a plot, beside their points as ImPlot places them; none covers another one.
class Annotations {
 public:
  // No annotation covers this point.
  void avoid(double x, double y) {
    const ImVec2 at = ImPlot::PlotToPixels(x, y);
    const float off = 0.4f * ImGui::GetFontSize();
    boxes_.push_back({{at.x - off, at.y - off}, {at.x + off, at.y + off}});
  }
  // Up to so much further up or down, where it covers no other one; false: there is no such place.
  bool add(double x, double y, const PaletteColour& colour, ImVec2 offset, const std::string& text, float further) {
    const float step = 0.3f * ImGui::GetFontSize();
    for (float moved = 0; moved <= further; moved += step) {
      const ImVec2 here{offset.x, offset.y + (offset.y < 0 ? -moved : moved)};
      const Box box = place(x, y, here, text);
      const auto covers = [&](const Box& other) {
        return box.min.x < other.max.x && other.min.x < box.max.x && box.min.y < other.max.y && other.min.y < box.max.y;
      };
      if (std::ranges::any_of(boxes_, covers)) continue;
      boxes_.push_back(box);
      ImPlot::Annotation(x, y, to_vec4(colour), here, true, "%s", text.c_str());
      return true;
    }
    return false;
  }

 private:
  struct Box {
    ImVec2 min, max;
  };
  static Box place(double x, double y, ImVec2 offset, const std::string& text) {
    const ImVec2 padding = ImPlot::GetStyle().AnnotationPadding, letters = ImGui::CalcTextSize(text.c_str());
    const ImVec2 size{letters.x + 2 * padding.x, letters.y + 2 * padding.y};
    const ImVec2 at = ImPlot::PlotToPixels(x, y), plot = ImPlot::GetPlotPos(), extent = ImPlot::GetPlotSize();
    const auto begin = [](float point, float off, float length, float least, float room) {
      const float free = off == 0 ? point - length / 2 : off > 0 ? point + off : point + off - length;
      return std::clamp(free, least, std::max(least, least + room - length));
    };
    const ImVec2 min{begin(at.x, offset.x, size.x, plot.x, extent.x), begin(at.y, offset.y, size.y, plot.y, extent.y)};
    return {min, {min.x + size.x, min.y + size.y}};
  }

  std::vector<Box> boxes_;
};

void plot_measured(const SpeedupPoints& points) {
  std::vector<double> batch, speedup, below, above;
  for (const SpeedupPoint& point : points.points) {
    batch.push_back(static_cast<double>(point.batch));
    speedup.push_back(point.speedup);
    below.push_back(point.speedup - point.low);
    above.push_back(point.high - point.speedup);
  }
  ImPlotSpec spec;
  spec.LineColor = ImGui::GetStyleColorVec4(ImGuiCol_Text);
  spec.Size = 0.5f * ImGui::GetFontSize();
  plot_intervals("measured or quoted", batch, speedup, below, above, spec);
  spec.Marker = ImPlotMarker_Circle;
  spec.MarkerSize = 0.3f * ImGui::GetFontSize();
  spec.MarkerFillColor = spec.MarkerLineColor = ImGui::GetStyleColorVec4(ImGuiCol_Text);
  plot_points("measured or quoted", batch, speedup, spec);
}

// All curves at the batch under the mouse.
void show_values(const SpeedupByBatchSnapshot& snapshot) {
  if (!ImPlot::IsPlotHovered() || snapshot.curves.front().batch.empty()) return;
  const double wanted = ImPlot::GetPlotMousePos().x;
  const std::vector<double>& batches = snapshot.curves.front().batch;
  const auto nearest = std::ranges::min_element(
      batches, {}, [&](double batch) { return std::abs(std::log(batch / std::max(wanted, 1e-3))); });
  const auto at = static_cast<std::size_t>(nearest - batches.begin());
  if (!ImGui::BeginTooltip()) return;
  ImGui::Text("batch %.0f", *nearest);
  for (const SpeedupCurve& curve : snapshot.curves)
    if (at < curve.batch.size())
      ImGui::Text("%-16s %.2f  (%.2f to %.2f), step ratio %.2f%s%s", curve.name.c_str(), curve.speedup[at],
                  curve.low[at], curve.high[at], curve.step_ratio[at], curve.name == curve.draft[at] ? "" : ", ",
                  curve.name == curve.draft[at] ? "" : curve.draft[at].c_str());
  if (snapshot.report.points)
    for (const SpeedupPoint& point : snapshot.report.points->points)
      if (point.batch == static_cast<std::int64_t>(*nearest))
        ImGui::Text("%.2f  %s", point.speedup,
                    printable_line(point.drafter + " " + point.draft + ", " + point.source).c_str());
  ImGui::EndTooltip();
}

// As a phone's: legends stand below their plots there.
bool is_narrow(ImVec2 size) {
  return size.x < 26 * ImGui::GetFontSize();
}
ImPlotLocation legend_place(ImVec2 size) {
  return is_narrow(size) ? ImPlotLocation_South : ImPlotLocation_East;
}

void plot_speedups(const SpeedupByBatchSnapshot& snapshot, ImVec2 size) {
  const double batch_max = snapshot.curves.front().batch.back();
  const double top = std::ceil(2.0 * (highest(snapshot) + 0.1)) / 2.0;
  // Other limits are another plot: the person's own pan and zoom last while they stay.
  char id[64];
  std::snprintf(id, sizeof id, "Speedup over plain decoding##%g %g", batch_max, top);
  if (!ImPlot::BeginPlot(id, size)) return;
  ImPlot::SetupAxes("requests at a time (B)", "speedup");
  const LogTicks ticks = is_narrow(size) ? LogTicks::powers_of_four : LogTicks::powers_of_two;
  setup_log_axis(ImAxis_X1, {1, batch_max}, ImPlotCond_Once, ticks);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, top, ImPlotCond_Once);
  ImPlot::SetupLegend(legend_place(size), ImPlotLegendFlags_Outside);
  const SpeedupCurve& best = snapshot.curves.front();
  ImPlotSpec band = fill_of(colour_of(0), 0.3f);
  band.Flags = ImPlotItemFlags_NoLegend;
  plot_area("80 % band", best.batch, best.low, best.high, band);
  ImPlotSpec level = line_of(palette::kGrey, 1.0f);
  level.Flags |= ImPlotItemFlags_NoLegend;
  level.Flags |= ImPlotInfLinesFlags_Horizontal;
  plot_limit("no gain", 1.0, level);
  for (std::size_t i = 0; i < snapshot.curves.size(); ++i) plot_curve(snapshot.curves[i], i);
  if (snapshot.report.points && !snapshot.report.points->points.empty()) plot_measured(*snapshot.report.points);
  const float em = ImGui::GetFontSize();
  Annotations annotations;
  if (snapshot.report.points)
    for (const SpeedupPoint& point : snapshot.report.points->points)
      annotations.avoid(static_cast<double>(point.batch), point.speedup);
  for (std::size_t i = 0; i < snapshot.curves.size(); ++i) {
    const auto& off = snapshot.curves[i].break_even;
    if (!off || static_cast<double>(*off) > batch_max) continue;
    // On the line of no gain, above and below it by turns: nothing covers the ticks.
    const float side = i % 2 == 0 ? -1.0f : 1.0f;
    annotations.add(static_cast<double>(*off), 1.0, colour_of(i), {0.0f, side * 0.9f * em}, std::to_string(*off),
                    size.y);
    if (i != 0) continue;
    ImPlotSpec spec = line_of(palette::kGrey, 1.0f);
    spec.Flags = ImPlotItemFlags_NoLegend;
    plot_limit("break-even", static_cast<double>(*off), spec);
  }
  if (const auto held = static_cast<double>(snapshot.report.prediction.batch_of_memory);
      held >= 1 && held < batch_max) {
    const PaletteColour& colour = palette::kVermilion;
    ImPlotSpec spec = line_of(colour, 1.5f);
    spec.Flags = ImPlotItemFlags_NoLegend;
    plot_limit("memory", held, spec);
    annotations.add(held, top, colour, {-0.5f * em, 0.8f * em}, "memory holds " + number("%.0f", held), size.y);
  }
  constexpr double kLeastRun = 1.3;  // of batches, for a name; where two drafts are nearly as good they alternate
  std::string named;                 // last
  for (std::size_t i = 0, end = 0; i < best.draft.size(); i = end) {
    while (end < best.draft.size() && best.draft[end] == best.draft[i]) ++end;
    const double until = end < best.draft.size() ? best.batch[end] : 2 * batch_max;
    if (best.draft[i] != named && until >= kLeastRun * best.batch[i] &&
        annotations.add(best.batch[i], best.speedup[i], colour_of(0), {0.4f * em, -0.9f * em}, best.draft[i], 2 * em))
      named = best.draft[i];
  }
  show_values(snapshot);
  ImPlot::EndPlot();
}

// Share of the GPU's operations a second that a pass reaches, by its operations a byte: the roof rises with the bytes
// a second, and is flat behind the ridge.
void plot_roofline(const SpeedupByBatchSnapshot& snapshot, ImVec2 size) {
  if (!ImPlot::BeginPlot("Roofline of the verification pass (B = 1 at the left)", size)) return;
  const double ridge = snapshot.report.prediction.ridge_intensity;
  const SpeedupCurve& plain = snapshot.plain;
  LogExtent intensities, shares;
  for (const double x : {1.0, 8.0 * ridge}) intensities.add(x);
  for (const double y : {1.0 / ridge, 1.0}) shares.add(y);
  const auto add = [&](const SpeedupCurve& curve) {
    intensities.add(curve.intensity);
    shares.add(curve.share_of_peak);
  };
  add(plain);
  for (const SpeedupCurve& curve : snapshot.curves) add(curve);
  const double last = intensities.most;
  ImPlot::SetupAxes("operations per byte, about B (K + 1)", "share of peak");
  setup_log_axis(ImAxis_X1, intensities);
  setup_log_axis(ImAxis_Y1, shares);
  ImPlot::SetupLegend(legend_place(size), ImPlotLegendFlags_Outside);
  const std::array roof_x{1.0, ridge, last};
  const std::array roof_y{1.0 / ridge, 1.0, 1.0};
  ImPlotSpec roof = line_of(palette::kGrey, 2.5f);
  roof.LineColor = ImGui::GetStyleColorVec4(ImGuiCol_Text);
  plot_line("roof", roof_x, roof_y, roof);
  plot_line(plain.name, plain.intensity, plain.share_of_peak, line_with_markers(palette::kGrey, ImPlotMarker_Square));
  for (std::size_t i = 1; i < snapshot.curves.size(); ++i) {
    const SpeedupCurve& curve = snapshot.curves[i];
    if (curve.kind == SpeedupCurve::Kind::compared) continue;
    plot_line(curve.name, curve.intensity, curve.share_of_peak, line_with_markers(colour_of(i)));
  }
  ImPlotSpec line = line_of(palette::kVermilion, 1.5f);
  line.Flags = ImPlotItemFlags_NoLegend | ImPlotItemFlags_NoFit;
  plot_limit("ridge", ridge, line);
  ImPlot::Annotation(ridge, 1.0, to_vec4(palette::kVermilion), {-0.5f * ImGui::GetFontSize(), 0}, true, "ridge %.0f",
                     ridge);
  ImPlot::EndPlot();
}

void draw_limits(Controls& controls, const SpeedupByBatchSnapshot& snapshot, ImVec2 size) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("limits", 4, kFlags, size)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("draft", ImGuiTableColumnFlags_WidthFixed);  // as wide as the longest name
  for (const char* const name : {"at B = 1", "memory to", "no gain from"}) ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  const auto limit = [](const std::optional<std::int64_t>& batch) {
    if (batch) {
      ImGui::Text("%lld", static_cast<long long>(*batch));
    } else {
      ImGui::TextDisabled("-");
    }
  };
  for (const SpeedupCurve& curve : snapshot.curves) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(curve.name.c_str());
    ImGui::TableNextColumn();
    if (!curve.speedup.empty()) ImGui::Text("%.2f", curve.speedup.front());
    ImGui::TableNextColumn();
    const bool is_one_draft = curve.kind == SpeedupCurve::Kind::chain || curve.kind == SpeedupCurve::Kind::tree;
    limit(is_one_draft ? std::optional(curve.memory_bound_up_to) : std::nullopt);
    ImGui::TableNextColumn();
    limit(curve.break_even);
  }
  ImGui::EndTable();
  controls.describe("limits",
                    "Speedup of one request; the largest batch whose verification the memory bounds; the batch from "
                    "which on it does not pay.");
}

// Speedup by batch above; below it the roofline of the verification pass and what the batch does to each draft.
void draw_speedup_plots(Controls& controls, const SpeedupByBatchSnapshot& snapshot) {
  const float em = ImGui::GetFontSize();
  ImGui::TextWrapped("%s", printable_line(snapshot.head).c_str());
  const Prediction& prediction = snapshot.report.prediction;
  ImGui::TextWrapped("%s The memory holds %lld requests of this context.", prediction.load_advice.c_str(),
                     static_cast<long long>(prediction.batch_of_memory));
  ImGui::PushTextWrapPos(0);
  for (const std::string& note : snapshot.report.notes) ImGui::TextDisabled("%s", printable_line(note).c_str());
  ImGui::PopTextWrapPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = ImGui::GetStyle().ItemSpacing.y;
  const bool narrow = is_narrow(room);
  const float upper = narrow ? 30 * em : std::max(14 * em, 0.56f * (room.y - gap));
  const float lower = narrow ? 26 * em : std::max(11 * em, room.y - gap - upper);
  with_caption(
      "Below 1 speculation loses. The best draft is named where it changes; the band holds it in 80 %. A number marks "
      "the batch from which a draft gains nothing.",
      {-1, upper}, [&](ImVec2 size) { plot_speedups(snapshot, size); });
  const float table = narrow ? room.x : std::min(24 * em, 0.45f * room.x);
  with_caption("Extra drafts are free while the GPU waits for memory; from the ridge on each costs time.",
               {narrow ? room.x : room.x - table - ImGui::GetStyle().ItemSpacing.x, lower},
               [&](ImVec2 size) { plot_roofline(snapshot, size); });
  if (!narrow) ImGui::SameLine();
  draw_limits(controls, snapshot, {table, lower});
}

const std::string kTypical = "typical of the drafter";
const std::string kOneRate = "one rate";
const std::string kNone = "none";

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineProfile& engine : engine_presets()) names.push_back(engine.name);
  return names;
}

// Presets, and draft models of the usual families.
std::vector<std::string> drafter_names() {
  std::vector<std::string> names;
  for (const std::string& name : drafter_preset_names())
    if (name != "draft model") names.push_back(name);
  for (const char* const model : {"Llama-3.1-8B", "Llama-3.2-1B", "Qwen3-0.6B", "Qwen2.5-0.5B", "Gemma-3-1B"})
    names.emplace_back(model);
  return names;
}

// The rate of "constant:0.8"; nothing for other acceptances.
std::optional<double> rate_of(const std::string& acceptance) {
  const std::string prefix = "constant:";
  return acceptance.starts_with(prefix) ? read_number(acceptance.substr(prefix.size())) : std::nullopt;
}

std::string constant_rate(double rate) {
  return number("constant:%.2f", rate);
}

std::string file_name(const std::string& path) {
  const std::filesystem::path file(path);
  return (file.parent_path().filename() / file.filename()).string();
}

bool is_measured_csv(const std::string& path) {
  const CsvTable table = read_csv(path);
  return table.column("hardware") >= 0 && table.column("target_model") >= 0 && table.column("draft_method") >= 0;
}

}  // namespace

bool SpeedupByBatchPanel::open(const OpenedResult& result) {
  if (result.verb == "predict") {
    set(settings_of_prediction(result.document, result.file));
    return true;
  }
  if (result.extension() == ".toml") {
    const TomlValue file = read_toml(result.file);
    if (file.find("claim") == nullptr || file.text_or("x", "") != "batch size") return false;
    set(settings_of_experiment(result.file));
    return true;
  }
  if (result.verb != "validate" && !(result.extension() == ".csv" && is_measured_csv(result.file))) return false;
  SpeedupByBatchSettings with = settings();
  with.request.measured = result.file;
  set(with);
  return true;
}

void SpeedupByBatchPanel::draw_choices(Controls& controls, PredictionRequest& request) {
  static const std::vector<std::string> kModels = model_preset_names();
  static const std::vector<std::string> kGpus = gpu_preset_names();
  static const std::vector<std::string> kEngines = engine_names();
  static const std::vector<std::string> kDrafters = drafter_names();
  if (controls.choice("model", request.model, kModels, "The target: its weights and KV are what a pass reads."))
    request.tp.reset();
  if (controls.choice("GPU", request.gpu, kGpus, "Bytes and operations a second: the two slopes of the roofline."))
    request.tp.reset();
  std::int64_t gpus = request.tp.value_or(0);
  if (controls.slider("GPUs", gpus, 0, 16, "TP: GPUs that share every layer; 0: as few as hold the weights."))
    request.tp = gpus == 0 ? std::nullopt : std::optional(static_cast<int>(gpus));
  controls.choice("engine", request.engine, kEngines, "Whose launches, floors and efficiencies a step has.");
  controls.choice("drafter", request.drafter, kDrafters, "Drafter: its passes are c in step ratio = 1 + K c + ...");
  controls.slider("context", request.context, 16, 32768,
                  "Tokens in the cache of a request: their KV is read in every step.");
}

void SpeedupByBatchPanel::draw_what_if(Controls& controls, SpeedupByBatchSettings& settings) {
  PredictionRequest& request = settings.request;
  const auto rate = rate_of(request.acceptance);
  std::vector<std::string> kinds{kTypical, kOneRate};
  std::string kind = rate ? kOneRate : kTypical;
  if (!request.metrics.empty()) kind = file_name(request.metrics);
  if (request.metrics.empty() && !rate && !request.acceptance.empty()) kind = request.acceptance;
  if (kind != kTypical && kind != kOneRate) kinds.push_back(kind);
  if (controls.choice("acceptance", kind, kinds, "Medians of published rates, or a rate a at every position.")) {
    request.metrics.clear();
    request.acceptance = kind == kOneRate ? constant_rate(0.7) : "";
  }
  if (double a = rate.value_or(0.0);
      rate && controls.slider("rate a", a, {0.05, 0.99},
                              "a: P(a draft is accepted, those before it accepted); 1 + a + ... + a^K tokens a step."))
    request.acceptance = constant_rate(a);
  controls.slider("accepted drafts x", request.acceptance_factor, {0.25, 2, true, "%.2f"},
                  "What if: so many times as many accepted drafts, tau = 1 + x (tau - 1), at most K + 1.");
  controls.slider("draft cost x", request.draft_cost_factor, {0.05, 20, true, "%.2f"},
                  "What if: drafting takes x times as long; the step ratio changes by K c (x - 1).");
  controls.toggle("guidance", request.guidance,
                  "Classifier-free guidance: two streams a request, twice the rows verified.");
  controls.toggle("compare guidance", request.compare_guidance,
                  "Adds the best draft with guidance, or without where it is on.");
}

void SpeedupByBatchPanel::draw_curves_shown(Controls& controls, SpeedupByBatchSettings& settings) {
  static const std::vector<std::string> kComparable = [] {
    std::vector<std::string> names = drafter_names();
    names.insert(names.begin(), kNone);
    return names;
  }();
  PredictionRequest& request = settings.request;
  std::string compared = request.compared_drafters.empty() ? kNone : request.compared_drafters.front();
  if (controls.choice("compare with", compared, kComparable,
                      "Adds the best of another drafter, with acceptances typical of it.")) {
    request.compared_drafters.clear();
    if (compared != kNone) request.compared_drafters.push_back(compared);
  }
  for (const int k : {1, 2, 3, 5, 8}) {
    if (k != 1) ImGui::SameLine();
    const auto found = std::ranges::find(settings.shown_drafts, k);
    bool shown = found != settings.shown_drafts.end();
    if (!controls.toggle(("K=" + std::to_string(k)).c_str(), shown, "A curve for chains of K drafts.")) continue;
    if (shown) {
      settings.shown_drafts.push_back(k);
      std::ranges::sort(settings.shown_drafts);
    } else {
      settings.shown_drafts.erase(found);
    }
  }
  controls.toggle("trees", settings.show_trees, "Curves for trees, the best depth of each size.");
  controls.slider("batches to", settings.batch_max, 2, 2048, "B: the largest batch of the curves.");
  ImGui::TextWrapped("points: %s", request.measured.empty()
                                       ? "none; drop a CSV, a validate document or an experiment here"
                                       : printable_line(file_name(request.measured)).c_str());
  if (!request.measured.empty() && controls.button("no points", "Takes the measured or quoted points away."))
    request.measured.clear();
}

void SpeedupByBatchPanel::draw_controls(Controls& controls, SpeedupByBatchSettings& settings) {
  ImGui::SeparatorText("Machine");
  draw_choices(controls, settings.request);
  ImGui::SeparatorText("What if");
  draw_what_if(controls, settings);
  ImGui::SeparatorText("Curves");
  draw_curves_shown(controls, settings);
}

void SpeedupByBatchPanel::draw_body(Controls& controls, SpeedupByBatchSettings& settings,
                                    const SpeedupByBatchSnapshot* snapshot) {
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool wide = room.x > 56 * em;
  if (ImGui::BeginChild("controls", wide ? ImVec2{21 * em, 0} : ImVec2{0, std::min(0.35f * room.y, 16 * em)}))
    draw_controls(controls, settings);
  ImGui::EndChild();
  if (wide) ImGui::SameLine();
  if (ImGui::BeginChild("plots") && snapshot != nullptr) draw_speedup_plots(controls, *snapshot);
  ImGui::EndChild();
}

}  // namespace draftproof
