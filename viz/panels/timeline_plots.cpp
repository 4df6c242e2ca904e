#include "viz/panels/timeline_plots.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/printable.hpp"
#include "engine/scheduler/kv_blocks.hpp"
#include "viz/panels/plot_style.hpp"

namespace draftproof {
namespace {

constexpr double kSeconds = 1e-9;       // of a nanosecond
constexpr std::size_t kBoxesMax = 800;  // of a lane
constexpr std::size_t kLanesMax = 150;

constexpr std::array<const PaletteColour*, kStepParts> kPartColours{
    &palette::kDraft, &palette::kPrefill, &palette::kVerify, &palette::kGreen, &palette::kGrey};

std::int64_t ns_of(double seconds) {
  return static_cast<std::int64_t>(seconds * 1e9);
}

bool begin_time_plot(const char* title, const char* y_label, TimeView view, ImVec2 size, ImPlotAxisFlags y_flags,
                     bool last) {
  if (!ImPlot::BeginPlot(title, size)) return false;
  ImPlot::SetupAxes(last ? "simulated time (s)" : nullptr, y_label, last ? 0 : ImPlotAxisFlags_NoTickLabels, y_flags);
  ImPlot::SetupAxisLinks(ImAxis_X1, &view.from_s, &view.to_s);
  ImPlot::SetupAxisLimitsConstraints(ImAxis_X1, -0.02 * view.end_s, 1.02 * view.end_s + 0.1);
  ImPlot::SetupAxisZoomConstraints(ImAxis_X1, 1e-4, 2.0 * view.end_s + 1.0);
  ImPlot::SetupLegend(ImPlotLocation_North, ImPlotLegendFlags_Outside | ImPlotLegendFlags_Horizontal);
  return true;
}

void legend_entry(const char* name, const PaletteColour& colour) {
  ImPlotSpec spec;
  spec.FillColor = spec.LineColor = to_vec4(colour);
  ImPlot::PlotDummy(name, spec);
}

// A step: its parts one after the other. Many: the shares of the time, one above the other; the rest is idle.
void draw_box(const StepBox& box, double bottom, double top) {
  const auto rectangle = [&](double begin_s, double end_s, double low, double high, std::size_t part) {
    plot_box(name_of(static_cast<StepPart>(part)), begin_s, end_s, low, high, to_u32(*kPartColours[part]));
  };
  const double begin_s = static_cast<double>(box.begin_ns) * kSeconds;
  const double end_s = static_cast<double>(box.end_ns) * kSeconds;
  if (box.steps == 1) {
    std::int64_t at = box.begin_ns;
    for (std::size_t part = 0; part < kStepParts; ++part) {
      if (box.part_ns[part] == 0) continue;
      rectangle(static_cast<double>(at) * kSeconds, static_cast<double>(at + box.part_ns[part]) * kSeconds, bottom, top,
                part);
      at += box.part_ns[part];
    }
    return;
  }
  double low = bottom;
  const auto whole = static_cast<double>(box.end_ns - box.begin_ns);
  for (std::size_t part = 0; part < kStepParts; ++part) {
    if (box.part_ns[part] == 0) continue;
    const double high = low + (top - bottom) * static_cast<double>(box.part_ns[part]) / whole;
    rectangle(begin_s, end_s, low, high, part);
    low = high;
  }
}

void show_box(const PolicyTimeline& timeline, double time_s) {
  const auto under = timeline.steps.visible(ns_of(time_s), ns_of(time_s), 1);
  if (under.empty() || !ImGui::BeginTooltip()) return;
  const StepBox& box = under.front();
  ImGui::Text("%s, step %lld: %.3f ms", timeline.policy.c_str(), static_cast<long long>(box.first_step),
              static_cast<double>(box.busy_ns()) * 1e-6);
  for (std::size_t part = 0; part < kStepParts; ++part)
    if (box.part_ns[part] > 0)
      ImGui::Text("  %-8s %.3f ms", name_of(static_cast<StepPart>(part)),
                  static_cast<double>(box.part_ns[part]) * 1e-6);
  ImGui::Text("%d requests, %d wait; %lld prompt tokens", box.running_max, box.waiting_max,
              static_cast<long long>(box.prompt_tokens));
  ImGui::Text("drafted %lld, accepted %lld, emitted %lld", static_cast<long long>(box.drafted),
              static_cast<long long>(box.accepted), static_cast<long long>(box.emitted));
  ImGui::EndTooltip();
}

void draw_lane(const PolicyTimeline& timeline, TimeView view, double bottom, double top) {
  for (const StepBox& box : timeline.steps.visible(ns_of(view.from_s), ns_of(view.to_s), kBoxesMax))
    draw_box(box, bottom, top);
}

// Mean blocks of a box that hold so many slots over its time.
double blocks_of(const StepBox& box, double slot_ns) {
  return box.mean_slots(slot_ns) / static_cast<double>(kKvBlockSlots);
}

struct Areas {
  std::vector<double> time_s, zero, committed, accepted, rejected, held;
};

Areas areas_of(const PolicyTimeline& timeline, TimeView view, bool with_committed) {
  Areas areas;
  for (const StepBox& box : timeline.steps.visible(ns_of(view.from_s), ns_of(view.to_s), kBoxesMax / 2)) {
    const double whole = blocks_of(box, box.committed_slot_ns);
    const double committed = with_committed ? whole : 0.0;
    const double accepted = committed + blocks_of(box, box.accepted_slot_ns);
    const double rejected = accepted + blocks_of(box, box.rejected_slot_ns);
    const double held = blocks_of(box, box.held_slot_ns) - (whole - committed);
    for (const std::int64_t ns : {box.begin_ns, box.end_ns}) {
      areas.time_s.push_back(static_cast<double>(ns) * kSeconds);
      areas.zero.push_back(0.0);
      areas.committed.push_back(committed);
      areas.accepted.push_back(accepted);
      areas.rejected.push_back(rejected);
      areas.held.push_back(held);
    }
  }
  return areas;
}

void plot_counts(const PolicyTimeline& timeline, TimeView view, std::int32_t StepBox::*count, const std::string& name,
                 const ImPlotSpec& spec) {
  std::vector<double> time_s, counts;
  double end_s = 0.0;
  for (const StepBox& box : timeline.steps.visible(ns_of(view.from_s), ns_of(view.to_s), kBoxesMax)) {
    time_s.push_back(static_cast<double>(box.begin_ns) * kSeconds);
    counts.push_back(static_cast<double>(box.*count));
    end_s = static_cast<double>(box.end_ns) * kSeconds;
  }
  if (!counts.empty()) {  // the last step lasts, too
    time_s.push_back(end_s);
    counts.push_back(counts.back());
  }
  plot_stairs(name, time_s, counts, spec);
}

}  // namespace

void plot_steps(Controls& controls, const ServingTimelineSnapshot& snapshot, TimeView view, ImVec2 size) {
  if (!begin_time_plot("##steps", nullptr, view, size, ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks,
                       false))
    return;
  const PolicyTimeline& upper = *snapshot.upper();
  const PolicyTimeline* const lower = snapshot.lower();
  const double centres[] = {0.5, 1.5};
  const char* const names[] = {lower != nullptr ? lower->policy.c_str() : "", upper.policy.c_str()};
  ImPlot::SetupAxisLimits(ImAxis_Y1, lower != nullptr ? 0 : 1, 2, ImPlotCond_Always);
  ImPlot::SetupAxisTicks(ImAxis_Y1, centres, 2, names);
  for (std::size_t part = 0; part < kStepParts; ++part)
    legend_entry(name_of(static_cast<StepPart>(part)), *kPartColours[part]);
  ImPlot::PushPlotClipRect();
  draw_lane(upper, view, 1.08, 1.92);
  if (lower != nullptr) draw_lane(*lower, view, 0.08, 0.92);
  ImPlot::PopPlotClipRect();
  const ImVec2 corner = ImPlot::GetPlotPos();
  const ImVec2 extent = ImPlot::GetPlotSize();
  controls.mark("steps", {corner, {corner.x + extent.x, corner.y + extent.y}});
  if (ImPlot::IsPlotHovered()) {
    const ImPlotPoint mouse = ImPlot::GetPlotMousePos();
    show_box(mouse.y >= 1.0 || lower == nullptr ? upper : *lower, mouse.x);
  }
  ImPlot::EndPlot();
}

void plot_requests(const PolicyTimeline& timeline, TimeView view, ImVec2 size) {
  const auto lanes = timeline.requests_between(ns_of(view.from_s), ns_of(view.to_s), kLanesMax);
  const std::string title = "Requests of " + timeline.policy + "###requests";
  if (!begin_time_plot(title.c_str(), "request", view, size,
                       ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks | ImPlotAxisFlags_NoTickLabels |
                           ImPlotAxisFlags_Invert,
                       false))
    return;
  ImPlot::SetupAxisLimits(ImAxis_Y1, -0.5, static_cast<double>(std::max<std::size_t>(lanes.size(), 8)) - 0.5,
                          ImPlotCond_Always);
  legend_entry("waits", palette::kGrey);
  legend_entry("prompt", palette::kPrefill);
  legend_entry("decodes", palette::kVerify);
  ImPlot::PushPlotClipRect();
  const double mouse_y = ImPlot::GetPlotMousePos().y;
  const RequestLane* hovered = nullptr;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const RequestLane& lane = *lanes[i];
    const auto y = static_cast<double>(i);
    const auto bar = [&](const char* name, std::int64_t begin_ns, std::int64_t end_ns, const PaletteColour& colour) {
      plot_box(name, static_cast<double>(begin_ns) * kSeconds, static_cast<double>(end_ns) * kSeconds, y - 0.4, y + 0.4,
               to_u32(colour));
    };
    bar("waits", lane.arrival_ns, lane.begin_ns, palette::kGrey);
    bar("prompt", lane.begin_ns, lane.first_token_ns, palette::kPrefill);
    bar("decodes", lane.first_token_ns, lane.last_token_ns, palette::kVerify);
    if (std::abs(mouse_y - y) < 0.5) hovered = &lane;
  }
  ImPlot::PopPlotClipRect();
  if (ImPlot::IsPlotHovered() && hovered != nullptr && ImGui::BeginTooltip()) {
    ImGui::Text("request %llu: prompt %d, output %d", static_cast<unsigned long long>(hovered->number),
                hovered->prompt_len, hovered->output_len);
    ImGui::Text("TTFT %.1f ms", static_cast<double>(hovered->first_token_ns - hovered->arrival_ns) * 1e-6);
    if (hovered->output_len > 1)
      ImGui::Text("TPOT %.2f ms", static_cast<double>(hovered->last_token_ns - hovered->first_token_ns) * 1e-6 /
                                      (hovered->output_len - 1));
    ImGui::Text("%d of %d drafts accepted, %d preemptions", hovered->accepted_tokens, hovered->draft_tokens,
                hovered->preemptions);
    ImGui::EndTooltip();
  }
  ImPlot::EndPlot();
}

void plot_blocks(const PolicyTimeline& timeline, std::int32_t num_blocks, bool with_committed, TimeView view,
                 ImVec2 size) {
  const std::string title = "KV blocks of " + timeline.policy + ", of " + std::to_string(num_blocks) + "###blocks";
  if (!begin_time_plot(title.c_str(), "blocks", view, size, ImPlotAxisFlags_AutoFit, false)) return;
  const Areas areas = areas_of(timeline, view, with_committed);
  const auto area = [&](const char* name, const std::vector<double>& low, const std::vector<double>& high,
                        const PaletteColour& colour) {
    plot_area(name, areas.time_s, low, high, fill_of(colour, 0.9f));
  };
  if (with_committed) area("committed", areas.zero, areas.committed, palette::kVerify);
  area("accepted drafts", areas.committed, areas.accepted, palette::kAccepted);
  area("wasted drafts", areas.accepted, areas.rejected, palette::kRecovered);
  area("block tails", areas.rejected, areas.held, palette::kGrey);
  ImPlot::EndPlot();
}

void plot_queue(const ServingTimelineSnapshot& snapshot, TimeView view, ImVec2 size) {
  ImPlot::PushStyleVar(ImPlotStyleVar_FitPadding, ImVec2(0, 0.1f));  // the frame covers no line
  if (!begin_time_plot("##queue", "requests", view, size, ImPlotAxisFlags_AutoFit, true)) return ImPlot::PopStyleVar();
  std::size_t colour = 0;
  for (const PolicyTimeline* const timeline : {snapshot.upper(), snapshot.lower()}) {
    if (timeline == nullptr) continue;
    plot_counts(*timeline, view, &StepBox::running_max, timeline->policy + ", running", line_of(series_colour(colour)));
    plot_counts(*timeline, view, &StepBox::waiting_max, timeline->policy + ", waiting",
                line_of(series_colour(colour), 1.0f, 0.6f));
    ++colour;
  }
  ImPlot::EndPlot();
  ImPlot::PopStyleVar();
}

void plot_loads(const ServingTimelineSnapshot& snapshot, ImVec2 size) {
  struct Plot {
    const char* title;
    const char* y;
    Figure figure;
    bool log_y;
  };
  constexpr std::array<Plot, 3> kPlots{Plot{"Time to first token, p50", "ms", Figure::ttft_p50, true},
                                       Plot{"Time per output token, p50", "ms", Figure::tpot_p50, false},
                                       Plot{"Goodput", "requests/s", Figure::goodput, false}};
  const float gap = ImGui::GetStyle().ItemSpacing.y;
  const float height = (size.y - 2 * gap) / 3;
  std::vector<double> loads;
  for (const LoadPoint& point : snapshot.loads) loads.push_back(point.load);
  ImPlot::PushStyleVar(ImPlotStyleVar_FitPadding, ImVec2(0.03f, 0.08f));  // no point is cut by the frame
  for (std::size_t i = 0; i < kPlots.size(); ++i) {
    if (!ImPlot::BeginPlot(kPlots[i].title, {size.x, height}, ImPlotFlags_NoLegend)) continue;  // names: the table
    const char* const load = snapshot.closed ? "requests at a time" : "requests/s";
    std::vector<std::vector<double>> curves(snapshot.reports.size());
    LogExtent of_loads, of_values;
    of_loads.add(loads);
    for (std::size_t p = 0; p < curves.size(); ++p) {
      for (const LoadPoint& point : snapshot.loads)
        curves[p].push_back(point.policies[p].figure(kPlots[i].figure).mean);
      of_values.add(curves[p]);
    }
    ImPlot::SetupAxes(i + 1 == kPlots.size() ? load : nullptr, kPlots[i].y, 0,
                      kPlots[i].log_y ? 0 : ImPlotAxisFlags_AutoFit);
    setup_log_axis(ImAxis_X1, of_loads, ImPlotCond_Always, LogTicks::powers_of_two);
    if (kPlots[i].log_y) setup_log_axis(ImAxis_Y1, of_values);
    for (std::size_t p = 0; p < curves.size(); ++p) {
      // What lies behind another curve is wider, with larger markers of another form.
      constexpr std::array kForms{ImPlotMarker_Square, ImPlotMarker_Diamond, ImPlotMarker_Up, ImPlotMarker_Circle};
      ImPlotSpec spec = line_with_markers(series_colour(p), kForms[p % kForms.size()]);
      const auto above = static_cast<float>(curves.size() - 1 - p);
      spec.LineWeight += 0.8f * above;
      spec.MarkerSize *= 1.0f + 0.3f * above;
      plot_line(snapshot.reports[p].name, loads, curves[p], spec);
    }
    ImPlot::EndPlot();
  }
  ImPlot::PopStyleVar();
}

void draw_policies(Controls& controls, const ServingTimelineSnapshot& snapshot, float height) {
  struct Column {
    const char* name;
    const char* format;
    Figure figure;
  };
  constexpr std::array<Column, 6> kColumns{
      Column{"tokens/s", "%.0f", Figure::throughput}, Column{"goodput", "%.2f", Figure::goodput},
      Column{"TTFT", "%.0f", Figure::ttft_p50},       Column{"TPOT", "%.2f", Figure::tpot_p50},
      Column{"KV", "%.3f", Figure::kv_use},           Column{"wasted", "%.0f", Figure::wasted_draft_tokens}};
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp;
  if (!ImGui::BeginTable("policies", 1 + static_cast<int>(kColumns.size()), kFlags, {-1, height})) return;
  ImGui::TableSetupColumn("policy");
  for (const Column& column : kColumns) ImGui::TableSetupColumn(column.name);
  ImGui::TableHeadersRow();
  for (std::size_t p = 0; p < snapshot.reports.size(); ++p) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextColored(text_colour_of(series_colour(p)), "%s", snapshot.reports[p].name.c_str());
    for (const Column& column : kColumns) {
      ImGui::TableNextColumn();
      const double value = snapshot.reports[p].figure(column.figure).mean;
      if (std::isfinite(value)) {
        ImGui::Text(column.format, value);
      } else {
        ImGui::TextDisabled("-");
      }
    }
  }
  ImGui::EndTable();
  controls.describe(
      "policies",
      "At this load: tokens/s, goodput in requests/s within the SLO, p50 of TTFT and TPOT in ms, share of "
      "the KV blocks held, drafted tokens that were rejected.");
}

}  // namespace draftproof
