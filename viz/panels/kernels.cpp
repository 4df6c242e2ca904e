#include "viz/panels/kernels.hpp"

#include <implot.h>

#include <algorithm>
#include <cmath>

#include "gpu/regress/regression_json.hpp"
#include "viz/panels/plot_style.hpp"

namespace draftproof {
namespace {

using regress::CaseResult;
using regress::Verdict;

const std::string kSound = "none (sound)";
const std::string kQuick = "quick";
const std::string kAll = "all cases";

const PaletteColour& colour_of(Verdict verdict) {
  return verdict == Verdict::equal       ? palette::kAccepted
         : verdict == Verdict::different ? palette::kRecovered
                                         : palette::kGrey;
}

KernelsSettings initial_settings() {
  KernelsSettings settings;
  settings.bench = latest_gpu_result();
  return settings;
}

// The case that is explained: the selected one, else the first that differs, else none.
const KernelCell* cell_of(const KernelsSnapshot& snapshot, const std::string& selected, const KernelRow** row_of_it) {
  for (const KernelRow& row : snapshot.kernels)
    for (const KernelCell& cell : row.cells)
      if (selected.empty() ? cell.verdict == Verdict::different : row.kernel + "/" + cell.name == selected) {
        *row_of_it = &row;
        return &cell;
      }
  return nullptr;
}

void draw_values(const regress::Difference& difference) {
  if (!ImGui::BeginTable("values", 3, ImGuiTableFlags_BordersInner | ImGuiTableFlags_SizingFixedFit)) return;
  for (const char* const name : {"", "hex", "decimal"}) ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  const auto row = [](const char* who, const regress::Difference::Value& value, const PaletteColour& colour) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(who);
    ImGui::TableNextColumn();
    ImGui::TextColored(text_colour_of(colour), "%s", value.hex.c_str());
    ImGui::TableNextColumn();
    ImGui::TextColored(text_colour_of(colour), "%s", value.decimal.empty() ? "-" : value.decimal.c_str());
  };
  row("kernel", difference.found, palette::kRecovered);
  row("reference", difference.expected, palette::kAccepted);
  ImGui::EndTable();
}

void plot_times(const KernelTimes& times, ImVec2 size) {
  const std::string title = "Time over floor on " + printable_line(times.gpu) + "###times";
  if (!ImPlot::BeginPlot(title.c_str(), size)) return;
  std::vector<double> positions, ratios, best;
  std::vector<const char*> names;
  for (const KernelTime& time : times.rows) {
    positions.push_back(static_cast<double>(positions.size()));
    ratios.push_back(time.over_floor());
    best.push_back(time.best_ms / time.floor_ms);
    names.push_back(time.name.c_str());
  }
  ImPlot::SetupAxes("time / floor", nullptr, 0, ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_Invert);
  LogExtent shown;
  shown.add(1.0);
  shown.add(ratios);
  shown.add(best);
  setup_log_axis(ImAxis_X1, shown, ImPlotCond_Once);
  ImPlot::SetupAxisLimits(ImAxis_Y1, -0.6, static_cast<double>(names.size()) - 0.4, ImPlotCond_Always);
  ImPlot::SetupLegend(ImPlotLocation_North, ImPlotLegendFlags_Outside | ImPlotLegendFlags_Horizontal);
  if (!names.empty()) ImPlot::SetupAxisTicks(ImAxis_Y1, positions.data(), static_cast<int>(names.size()), names.data());
  ImPlotSpec bars = fill_of(palette::kBlue, 1.0f);
  bars.Flags = ImPlotBarsFlags_Horizontal;
  plot_bars("median", ratios, positions, 0.6, bars);
  ImPlotSpec spec = line_with_markers(palette::kOrange);
  spec.LineColor = to_vec4(palette::kOrange, 0);
  plot_points("best", best, positions, spec);
  plot_limit("floor", 1.0, line_of(palette::kVermilion, 1.5f));
  if (ImPlot::IsPlotHovered()) {
    const auto at = static_cast<std::int64_t>(std::llround(ImPlot::GetPlotMousePos().y));
    if (at >= 0 && at < static_cast<std::int64_t>(times.rows.size()) && ImGui::BeginTooltip()) {
      const KernelTime& time = times.rows[static_cast<std::size_t>(at)];
      ImGui::Text("%s, %s", time.name.c_str(), printable_line(time.what).c_str());
      ImGui::Text("floor %.4f ms, median %.4f ms, best %.4f ms", time.floor_ms, time.median_ms, time.best_ms);
      if (time.met) ImGui::TextUnformatted(*time.met ? "goal met" : "goal MISSED");
      ImGui::EndTooltip();
    }
  }
  ImPlot::EndPlot();
}

}  // namespace

KernelsPanel::KernelsPanel() : SnapshotPanel(initial_settings()) {}

bool KernelsPanel::open(const OpenedResult& result) {
  KernelsSettings with = settings();
  if (result.verb == "regress") {
    regress::regression_of(result.document, result.file);
    with.opened = result.file;
    with.fault.clear();
    selected_.clear();
  } else if (result.verb == "bench" && result.document.contains("copy_bandwidth_bytes_per_s")) {
    kernel_times_of(result.document, result.file);
    with.bench = result.file;
  } else {
    return false;
  }
  set(with);
  return true;
}

void KernelsPanel::draw_controls(Controls& controls, KernelsSettings& settings, const KernelsSnapshot* snapshot) {
  if (!settings.opened.empty()) {
    ImGui::TextWrapped("from %s", printable_line(settings.opened).c_str());
    if (controls.button("run here", "Takes the file away and runs the quick cases on the CPU executor."))
      settings.opened.clear();
  } else {
    std::vector<std::string> kinds{kQuick, kAll};
    std::string kind = settings.filter == kQuickKernelCases ? kQuick : settings.filter.empty() ? kAll : settings.filter;
    if (kind != kQuick && kind != kAll) kinds.push_back(kind);
    ImGui::BeginDisabled(!settings.fault.empty());
    if (controls.choice("cases", kind, kinds,
                        "Some cases of every kernel, or all: minutes, with progress and cancel.")) {
      settings.filter = kind == kQuick ? kQuickKernelCases : kind == kAll ? "" : kind;
      selected_.clear();
    }
    controls.text("filter", settings.filter, "Parts of names of cases, as verify_chain/ragged,kv_commit/; empty: all.");
    ImGui::EndDisabled();
    static const std::vector<std::string> kFaults = [] {
      std::vector<std::string> ids = kernel_faults();
      ids.insert(ids.begin(), kSound);
      return ids;
    }();
    std::string fault = settings.fault.empty() ? kSound : settings.fault;
    if (controls.choice(
            "fault", fault, kFaults,
            "Kernels with one fault of a real engine, which the regression must find; built with the tests.")) {
      settings.fault = fault == kSound ? "" : fault;
      selected_.clear();
    }
    controls.slider("threads", settings.threads, 1, 16, "Cases at once; they change no result.");
    if (controls.button("other order",
                        "Runs threads and blocks in another order (seed + 1): the bits must be the same."))
      ++settings.seed;
    ImGui::SameLine();
    ImGui::TextDisabled("seed %llu", static_cast<unsigned long long>(settings.seed));
  }
  if (snapshot == nullptr) return;
  ImGui::SeparatorText("Results");
  std::int64_t counts[3] = {};
  for (const CaseResult& result : snapshot->report.results) ++counts[static_cast<std::size_t>(result.verdict)];
  ImGui::TextColored(text_colour_of(palette::kAccepted), "%lld runs equal", static_cast<long long>(counts[0]));
  ImGui::SameLine();
  ImGui::TextColored(text_colour_of(counts[1] > 0 ? palette::kRecovered : palette::kGrey), "%lld different",
                     static_cast<long long>(counts[1]));
  ImGui::SameLine();
  ImGui::TextColored(text_colour_of(palette::kGrey), "%lld skipped", static_cast<long long>(counts[2]));
  draw_explanation(*snapshot);
}

void KernelsPanel::draw_explanation(const KernelsSnapshot& snapshot) {
  const KernelRow* row = nullptr;
  const KernelCell* const cell = cell_of(snapshot, selected_, &row);
  if (cell == nullptr) {
    ImGui::TextWrapped(
        "Every output of every case equals the reference bit for bit. A case is run once for each block size; click it "
        "to see its runs.");
    return;
  }
  ImGui::SeparatorText("Case");
  ImGui::TextWrapped("%s", printable_line(row->kernel + "/" + cell->name).c_str());
  for (const std::size_t i : cell->results) {
    const CaseResult& result = snapshot.report.results[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::TextColored(text_colour_of(colour_of(result.verdict)), "%s", name_of(result.verdict).c_str());
    ImGui::SameLine();
    ImGui::Text(
        "%s, %.1f ms",
        result.block_threads == 0 ? "own block size" : (std::to_string(result.block_threads) + " threads").c_str(),
        result.seconds * 1e3);
    if (result.difference) {
      ImGui::Text("first difference: %s[%lld]", result.difference->output.c_str(),
                  static_cast<long long>(result.difference->index));
      draw_values(*result.difference);
    } else if (!result.finding.empty()) {
      ImGui::TextWrapped("%s", printable_line(result.finding).c_str());
    }
    ImGui::PopID();
  }
}

// Cells in lines as wide as there is room.
void KernelsPanel::draw_row(Controls& controls, const KernelRow& row, float width) {
  const float em = ImGui::GetFontSize();
  const float cell = 0.95f * em;
  const float pitch = cell + 0.14f * em;
  const auto per_line = static_cast<std::size_t>(std::max(1.0f, std::floor(width / pitch)));
  const std::size_t lines = (row.cells.size() + per_line - 1) / per_line;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton(row.kernel.c_str(), {width, std::max(pitch, pitch * static_cast<float>(lines))});
  const bool hovered = ImGui::IsItemHovered();
  const bool clicked = ImGui::IsItemClicked();
  const ImVec2 mouse = ImGui::GetMousePos();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const std::size_t line = i / per_line;
    const ImVec2 min{origin.x + pitch * static_cast<float>(i % per_line), origin.y + pitch * static_cast<float>(line)};
    const ImVec2 max{min.x + cell, min.y + cell};
    const KernelCell& one = row.cells[i];
    const std::string name = row.kernel + "/" + one.name;
    list.AddRectFilled(min, max, to_u32(colour_of(one.verdict)));
    if (name == selected_) list.AddRect(min, max, ImGui::GetColorU32(ImGuiCol_Text), 0, 0, 0.12f * em);
    if (i == 0) controls.mark(row.kernel, {min, max});
    if (one.verdict == Verdict::different) controls.mark("different", {min, max});
    if (!hovered || mouse.x < min.x || mouse.x >= min.x + pitch || mouse.y < min.y || mouse.y >= min.y + pitch)
      continue;
    ImGui::SetTooltip("%s: %s", name.c_str(), name_of(one.verdict).c_str());
    if (clicked) selected_ = name;
  }
}

void KernelsPanel::draw_matrix(Controls& controls, const KernelsSnapshot& snapshot, float width, float height) {
  const float em = ImGui::GetFontSize();
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit;
  if (!ImGui::BeginTable("matrix", 3, kFlags, {width, height})) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("kernel", ImGuiTableColumnFlags_WidthFixed, 7 * em);
  ImGui::TableSetupColumn("runs equal / different", ImGuiTableColumnFlags_WidthFixed,
                          std::max(8 * em, ImGui::CalcTextSize("runs equal / different").x));
  ImGui::TableSetupColumn("one field per case", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableHeadersRow();
  for (const KernelRow& row : snapshot.kernels) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(row.kernel.c_str());
    ImGui::TableNextColumn();
    ImGui::Text("%lld", static_cast<long long>(row.equal));
    ImGui::SameLine();
    ImGui::TextColored(text_colour_of(row.different > 0 ? palette::kRecovered : palette::kGrey), "%lld",
                       static_cast<long long>(row.different));
    ImGui::SameLine(0, em);
    ImGui::TextDisabled("%.2f s", row.seconds);
    ImGui::TableNextColumn();
    draw_row(controls, row, std::max(4 * em, ImGui::GetContentRegionAvail().x));
  }
  ImGui::EndTable();
}

void KernelsPanel::draw_body(Controls& controls, KernelsSettings& settings, const KernelsSnapshot* snapshot) {
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool wide = room.x > 52 * em;
  if (ImGui::BeginChild("controls", wide ? ImVec2{24 * em, 0} : ImVec2{0, std::min(0.45f * room.y, 22 * em)}))
    draw_controls(controls, settings, snapshot);
  ImGui::EndChild();
  if (wide) ImGui::SameLine();
  if (ImGui::BeginChild("matrix and times") && snapshot != nullptr) {
    const ImVec2 inside = ImGui::GetContentRegionAvail();
    // The matrix takes what it needs, the times what is left.
    const float rows = 1.6f * em * static_cast<float>(snapshot->kernels.size() + 2);
    const float times = snapshot->times ? std::max(0.4f * inside.y, inside.y - rows) : 2.4f * em;
    draw_matrix(controls, *snapshot, inside.x, inside.y - times - ImGui::GetStyle().ItemSpacing.y);
    if (snapshot->times) {
      with_caption(
          "A bar at 1 takes as long as moving its bytes at the GPU's bandwidth; a launch takes microseconds, many "
          "times the floor of a few bytes (tree_mask).",
          {-1, times}, [&](ImVec2 size) { plot_times(*snapshot->times, size); });
    } else {
      ImGui::TextDisabled("Times against their floors: drop the JSON of `draftproof bench --device cuda --json` here.");
    }
  }
  ImGui::EndChild();
}

}  // namespace draftproof
