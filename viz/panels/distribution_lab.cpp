#include "viz/panels/distribution_lab.hpp"

#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/split.hpp"
#include "exactness/bugs/bug.hpp"
#include "exactness/statistics/distribution_check.hpp"
#include "viz/panels/colours.hpp"
#include "viz/panels/plot_style.hpp"

namespace draftproof {
namespace {

constexpr double kLogitFloor = -8.0;  // what stands there is masked
constexpr double kBarWidth = 0.38;
constexpr float kPlayTime_s = 4;

std::vector<double> normalised_row(const std::vector<double>& row) {
  double sum = 0;
  for (const double x : row) sum += x;
  std::vector<double> out = row;
  for (double& x : out) x /= sum;
  return out;
}

ImPlotSpec bar_spec(const PaletteColour& colour) {
  ImPlotSpec spec;
  spec.FillColor = to_vec4(colour);
  spec.LineColor = to_vec4(colour);
  return spec;
}
// Places of the first so many tokens.
Values tokens(std::size_t count) {
  static const auto kTokens = [] {
    std::array<double, kLabVocabMax> all{};
    std::iota(all.begin(), all.end(), 0.0);
    return all;
  }();
  return Values(kTokens).first(count);
}
// A bar a token.
void plot_token_bars(const char* name, Values values, double width, const PaletteColour& colour) {
  plot_bars(name, tokens(values.size()), values, width, bar_spec(colour));
}

void setup_tokens(std::size_t vocab_size, const char* y_label) {
  ImPlot::SetupAxes("token", y_label, ImPlotAxisFlags_NoGridLines);
  ImPlot::SetupAxisLimits(ImAxis_X1, -0.6, static_cast<double>(vocab_size) - 0.4, ImPlotCond_Always);
  ImPlot::SetupAxisTicks(ImAxis_X1, 0, static_cast<double>(vocab_size) - 1, static_cast<int>(vocab_size));
  ImPlot::SetupLegend(ImPlotLocation_North, ImPlotLegendFlags_Outside | ImPlotLegendFlags_Horizontal);
}

// Bars of the row as given, and on them those of p: what temperature and filters made of it.
void plot_filtered(const DistributionLabSnapshot& snapshot, ImVec2 size) {
  if (!ImPlot::BeginPlot("p after temperature and filters##filtered", size)) return;
  setup_tokens(snapshot.p.size(), "probability");
  const std::vector<double> given = normalised_row(snapshot.settings.target);
  const double highest = std::max(std::ranges::max(given), std::ranges::max(snapshot.p));
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, 1.12 * highest, ImPlotCond_Always);
  plot_token_bars("as given", given, 0.8, palette::kGrey);
  plot_token_bars("p", snapshot.p, 0.45, palette::kTarget);
  ImPlot::EndPlot();
}

// Why rejection keeps p: each token's mass from accepted drafts, and on it what the residual adds; above p what is
// rejected. Unnormalised.
void plot_stacks(const DistributionLabSnapshot& snapshot, ImVec2 size) {
  if (!ImPlot::BeginPlot("p = min(p, q) + redistributed mass##rows", size)) return;
  setup_tokens(snapshot.p.size(), "probability");
  std::vector<double> larger;
  for (std::size_t i = 0; i < snapshot.p.size(); ++i) larger.push_back(std::max(snapshot.p[i], snapshot.q[i]));
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, 1.12 * std::ranges::max(larger), ImPlotCond_Always);
  // The lowest piece is drawn last, over the others.
  plot_token_bars("rejected", larger, 0.67, palette::kRejected);
  plot_token_bars("redistributed", snapshot.p, 0.67, palette::kRecovered);
  plot_token_bars("accepted", snapshot.overlap, 0.67, palette::kAccepted);
  ImPlotSpec tops = line_of(palette::kTarget);
  tops.Marker = ImPlotMarker_Square;
  tops.MarkerSize = 0.22f * ImGui::GetFontSize();
  tops.MarkerFillColor = tops.MarkerLineColor = to_vec4(palette::kTarget);
  plot_points("p", tokens(snapshot.p.size()), snapshot.p, tops);
  ImPlot::EndPlot();
}

// Shares of the emitted tokens, and what they should be within two standard errors.
void plot_emitted(const DistributionLabSnapshot& snapshot, const LabLook* look, ImVec2 size) {
  const std::string title =
      "Emitted" + (look == nullptr ? std::string() : ", " + std::to_string(look->samples) + " samples") + "###emitted";
  if (!ImPlot::BeginPlot(title.c_str(), size)) return;
  setup_tokens(snapshot.p.size(), "share");
  double highest = *std::max_element(snapshot.expected.begin(), snapshot.expected.end());
  for (std::size_t i = 0; look != nullptr && i < look->counts.size(); ++i)
    highest = std::max(highest, static_cast<double>(look->counts[i]) / static_cast<double>(look->samples));
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, 1.12 * highest, ImPlotCond_Always);
  if (look != nullptr) {
    const auto n = static_cast<double>(look->samples);
    std::vector<double> shares, errors;
    for (const std::int64_t count : look->counts) shares.push_back(static_cast<double>(count) / n);
    for (const double p : snapshot.expected) errors.push_back(2 * std::sqrt(p * std::max(0.0, 1 - p) / n));
    plot_token_bars("emitted", shares, 0.67, palette::kPurple);
    ImPlotSpec spec = line_of(palette::kTarget);
    spec.Size = 0.6f * ImGui::GetFontSize();
    plot_intervals("expected, 2 SE", tokens(errors.size()), snapshot.expected, errors, errors, spec);
    spec.Marker = ImPlotMarker_Square;
    spec.MarkerSize = 0.22f * ImGui::GetFontSize();
    spec.MarkerFillColor = spec.MarkerLineColor = to_vec4(palette::kTarget);
    plot_points("expected, 2 SE", tokens(errors.size()), snapshot.expected, spec);
  }
  ImPlot::EndPlot();
}

void plot_test(const DistributionLabSnapshot& snapshot, const LabLook* shown, ImVec2 size) {
  constexpr double kLeast = 1e-12;
  if (!ImPlot::BeginPlot("The test as samples come in##test", size)) return;
  std::vector<double> samples, p_values, observed, detectable;
  for (const LabLook& look : snapshot.looks) {
    if (shown != nullptr && look.samples > shown->samples) break;
    samples.push_back(static_cast<double>(look.samples));
    p_values.push_back(look.test.impossible_cell ? kLeast : std::max(look.test.p_value, kLeast));
    observed.push_back(std::max(look.observed_tv, kLeast));
    detectable.push_back(look.detectable_tv);
  }
  LogExtent of_samples, of_values;
  for (const LabLook& look : snapshot.looks) of_samples.add(static_cast<double>(look.samples));
  of_values.add(kDistributionAlpha);
  for (const auto* const curve : {&p_values, &observed, &detectable}) of_values.add(*curve);
  ImPlot::SetupAxes("samples", "p-value, total variation");
  setup_log_axis(ImAxis_X1, of_samples);
  setup_log_axis(ImAxis_Y1, of_values);
  const bool is_narrow = size.x < 26 * ImGui::GetFontSize();
  ImPlot::SetupLegend(ImPlotLocation_North,
                      ImPlotLegendFlags_Outside | (is_narrow ? ImPlotLegendFlags_None : ImPlotLegendFlags_Horizontal));
  plot_line("p-value", samples, p_values, line_of(palette::kVermilion));
  ImPlotSpec level = line_of(palette::kGrey);
  level.Flags = ImPlotInfLinesFlags_Horizontal;
  plot_limit("level", kDistributionAlpha, level);
  plot_line("observed distance", samples, observed, line_of(palette::kPurple));
  plot_line("detectable distance", samples, detectable, line_of(palette::kBlue));
  ImPlot::EndPlot();
}

// Lossy rules by what they accept and how far off they are.
void plot_lossy(const std::vector<LossyRule>& rules, ImVec2 size) {
  if (!ImPlot::BeginPlot("How far off, for how much speed?##lossy", size, ImPlotFlags_NoLegend)) return;
  double furthest = 1e-3;
  double most = 1e-3;
  for (const LossyRule& rule : rules) {
    furthest = std::max(furthest, rule.distance);
    most = std::max(most, rule.accepted);
  }
  ImPlot::SetupAxes("distance of the first token (total variation)", "accepted drafts a step");
  ImPlot::SetupAxisLimits(ImAxis_X1, -0.05 * furthest, 1.5 * furthest, ImPlotCond_Always);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, 1.12 * most, ImPlotCond_Always);
  const float em = ImGui::GetFontSize();
  std::vector<ImVec2> labels;
  for (const LossyRule& rule : rules) {
    const PaletteColour& colour = rule.verifier == "chain" ? palette::kGreen : palette::kVermilion;
    ImPlotSpec spec = line_with_markers(colour);
    plot_points(rule.verifier, {&rule.distance, 1}, {&rule.accepted, 1}, spec);
    const ImVec2 point = ImPlot::PlotToPixels(rule.distance, rule.accepted);
    ImVec2 label{point.x + 0.4f * em, point.y - 0.5f * em};
    const auto is_taken = [&](const ImVec2& other) {
      return std::abs(other.x - label.x) < 14 * em && std::abs(other.y - label.y) < em;
    };
    while (std::ranges::any_of(labels, is_taken)) label.y += em;
    labels.push_back(label);
    ImPlot::PushPlotClipRect();
    ImPlot::GetPlotDrawList()->AddText(label, ImGui::GetColorU32(ImGuiCol_Text), rule.verifier.c_str());
    ImPlot::PopPlotClipRect();
  }
  ImPlot::EndPlot();
}

// A bar from the floor of the plot, with a grip on its top.
struct DraggedBar {
  const char* row;
  int id;
  double x, floor, value;
  const PaletteColour& colour;
};
// The value that the mouse gives it; nothing while it is left alone.
std::optional<double> drag_bar(const DraggedBar& bar) {
  ImPlot::PushPlotClipRect();
  plot_box(bar.row, bar.x - kBarWidth / 2, bar.x + kBarWidth / 2, bar.floor, bar.value, to_u32(bar.colour, 0.6f));
  ImPlot::PopPlotClipRect();
  double x = bar.x;
  double y = bar.value;
  if (!ImPlot::DragPoint(bar.id, &x, &y, to_vec4(bar.colour), 0.32f * ImGui::GetFontSize(), ImPlotDragToolFlags_NoFit))
    return std::nullopt;
  return y;
}

std::vector<double> with_value(const std::vector<double>& row, std::size_t token, double value, bool is_logit) {
  if (!is_logit) return with_probability(row, token, value);
  constexpr double kMasked = kLogitFloor + 0.1;
  return value < kMasked ? with_probability(row, token, 0.0) : with_logit(row, token, value);
}

std::vector<std::string> verifier_items() {
  std::vector<std::string> items;
  for (const VerifierInfo& info : verifiers()) items.emplace_back(info.name);
  return items;
}
const std::string kNone = "none";
std::vector<std::string> bug_items() {
  std::vector<std::string> items{kNone};
  for (const LabBug& bug : lab_bugs()) items.push_back(bug.id);
  return items;
}

const PaletteColour& colour_of(LabVerdict verdict) {
  return verdict == LabVerdict::biased       ? palette::kVermilion
         : verdict == LabVerdict::consistent ? palette::kGreen
                                             : palette::kGrey;
}

}  // namespace

void DistributionLabPanel::advance_look(const DistributionLabSnapshot* snapshot) {
  look_ = nullptr;
  if (snapshot == nullptr || snapshot->looks.empty()) return;
  if (is_playing()) played_s_ += ImGui::GetIO().DeltaTime;
  if (played_s_ >= kPlayTime_s) played_s_ = -1;
  const float share = is_playing() ? played_s_ / kPlayTime_s : 1;
  look_ = &snapshot->looks[static_cast<std::size_t>(share * static_cast<float>(snapshot->looks.size() - 1))];
}

void DistributionLabPanel::draw_sampling_controls(Controls& controls, DistributionLabSettings& settings) {
  static const std::vector<std::string> kVerifiers = verifier_items();
  static const std::vector<std::string> kBugs = bug_items();
  static const std::vector<std::string> kSamples{"1000", "5000", "20000", "100000", "500000"};
  ImGui::SeparatorText("Sampling");
  ImGui::BeginDisabled(!settings.bug.empty());
  controls.choice("verifier", settings.verifier, kVerifiers,
                  "The rule that accepts drafts and draws the recovered token; drafts are drawn as it wants them.");
  controls.slider("draft tokens K", settings.draft_tokens, 1, 4,
                  "K: the length of a chain or path, or the siblings of one node.");
  ImGui::EndDisabled();
  std::string bug = settings.bug.empty() ? kNone : settings.bug;
  if (controls.choice("bug", bug, kBugs, "A bug that shipped in an engine, in place of the verifier."))
    settings.bug = bug == kNone ? "" : bug;
  std::string samples = std::to_string(settings.samples);
  if (controls.choice("samples", samples, kSamples,
                      "n of the test: it finds a total variation that falls as 1 / sqrt(n)."))
    settings.samples = std::stoll(samples);
  if (controls.button("new seed", "The same with other random numbers.")) ++settings.seed;
  ImGui::SameLine();
  if (controls.button("play", "Shows the samples as they came in.")) played_s_ = 0;
  ImGui::SameLine();
  if (controls.button("reset", "All settings as at the start.")) settings = {};
}

void DistributionLabPanel::draw_controls(Controls& controls, DistributionLabSettings& settings,
                                         const DistributionLabSnapshot* snapshot) {
  static const std::vector<std::string> kDragged{"probabilities", "logits"};
  ImGui::SeparatorText("Rows");
  controls.remember("target", settings.target);
  controls.remember("draft", settings.draft);
  controls.remember("unconditional", settings.unconditional);
  controls.remember("seed", settings.seed);
  static const std::vector<std::string> kFirst{"rows as given", "p after filters"};
  std::string first = kFirst[settings.filters_first ? 1 : 0];
  if (controls.choice("first plot", first, kFirst,
                      "The rows to drag; or p after temperature and filters, and then they."))
    settings.filters_first = first == kFirst[1];
  static const std::vector<std::string> kLast{"the test", "lossy rules"};
  std::string last = kLast[settings.lossy ? 1 : 0];
  if (controls.choice("last plot", last, kLast,
                      "The test of the samples; or lossy rules on these rows: acceptance gained, distance paid."))
    settings.lossy = last == kLast[1];
  controls.choice("drag", dragged_, kDragged,
                  "Bars of the first plot: softmax(l), which is renormalised, or the logits l.");
  controls.slider("temperature", settings.temperature, {0, 4}, "T of softmax(l / T), of p and q; 0 is the argmax.");
  controls.slider("top-k", settings.top_k, 0, static_cast<std::int64_t>(settings.target.size()),
                  "k: the k most probable tokens stay; 0 is off.");
  controls.slider("top-p", settings.top_p, {0.05, 1}, "A token stays while the mass before it is below top_p.");
  controls.slider("min-p", settings.min_p, {0, 1}, "Tokens of at least min_p max(p) stay.");
  controls.slider("CFG scale", settings.guidance_scale, {0, 5},
                  "s of l = l_u + s (l_c - l_u); 1 is off. The third row is l_u.");
  draw_sampling_controls(controls, settings);
  if (snapshot != nullptr) draw_numbers(*snapshot);
}

void DistributionLabPanel::draw_numbers(const DistributionLabSnapshot& snapshot) {
  ImGui::SeparatorText("Numbers");
  ImGui::Text("total variation of p and q  %.5f", snapshot.total_variation);
  ImGui::Text("acceptance, sum min(p, q)   %.5f", snapshot.acceptance);
  if (look_ == nullptr) return;
  if (snapshot.mean_accepted && !is_playing()) ImGui::Text("accepted drafts a step      %.5f", *snapshot.mean_accepted);
  ImGui::Text("chi-squared %.4g, %lld degrees of freedom", look_->test.statistic,
              static_cast<long long>(look_->test.df));
  ImGui::Text("p-value %.3g (level %.0e)", look_->test.p_value, kDistributionAlpha);
  ImGui::Text("distance (total variation) of the emitted:");
  ImGui::Text("observed %.4f, detectable %.4f", look_->observed_tv, look_->detectable_tv);
  ImGui::PushStyleColor(ImGuiCol_Text,
                        text_colour_of(colour_of(is_playing() ? LabVerdict::sampling : snapshot.verdict)));
  ImGui::TextWrapped("%s", is_playing() || snapshot.sentence.empty() ? "sampling" : snapshot.sentence.c_str());
  ImGui::PopStyleColor();
  for (const LabBug& bug : lab_bugs())
    if (bug.id == snapshot.settings.bug)
      ImGui::TextWrapped("%s is caught by: %s. %s: %s.", bug.id.c_str(),
                         joined(bug.detectors, ", ", [](char letter) { return name_of(Detector{letter}); }).c_str(),
                         bug.source.c_str(), bug.fault.c_str());
}

void DistributionLabPanel::draw_given_rows(Controls& controls, DistributionLabSettings& settings, ImVec2 size) {
  const bool is_logit = dragged_ == "logits";
  const bool is_guided = settings.guidance_scale != 1.0f;
  const double floor = is_logit ? kLogitFloor : 0.0;
  if (!ImPlot::BeginPlot("Rows as given: drag the tops##given", size)) return;
  setup_tokens(settings.target.size(), is_logit ? "logit" : "probability");
  ImPlot::SetupAxisLimits(ImAxis_Y1, floor, is_logit ? 1.0 : 1.02, ImPlotCond_Always);
  std::vector<double> unconditional = settings.unconditional;
  if (unconditional.empty()) unconditional.assign(settings.target.size(), 1.0);
  struct Row {
    const char* label;
    const char* mark;
    std::vector<double>& weights;
    const PaletteColour& colour;
    double shift;
  };
  std::vector<Row> rows{{"target", "p", settings.target, palette::kTarget, is_guided ? -0.3 : -0.2},
                        {"draft", "q", settings.draft, palette::kDraft, is_guided ? 0.0 : 0.2}};
  if (is_guided) rows.push_back({"unconditional", "u", unconditional, palette::kGrey, 0.3});
  int id = 0;
  bool unconditional_dragged = false;
  for (Row& row : rows) {
    ImPlot::PlotDummy(row.label, bar_spec(row.colour));
    const std::vector<double> shown = normalised_row(row.weights);
    for (std::size_t token = 0; token < shown.size(); ++token) {
      const double x = static_cast<double>(token) + row.shift;
      const double value = is_logit ? std::max(std::log(shown[token]), floor) : shown[token];
      if (const auto dragged = drag_bar({row.label, id++, x, floor, value, row.colour})) {
        row.weights = with_value(shown, token, *dragged, is_logit);
        unconditional_dragged = unconditional_dragged || &row.weights == &unconditional;
      }
      const ImVec2 top = ImPlot::PlotToPixels(x, value);
      const float half = 0.3f * ImGui::GetFontSize();
      controls.mark(std::string(row.mark) + " " + std::to_string(token),
                    {{top.x - half, top.y - half}, {top.x + half, top.y + half}});
    }
  }
  if (unconditional_dragged) settings.unconditional = std::move(unconditional);
  ImPlot::EndPlot();
}

void DistributionLabPanel::draw_plots(Controls& controls, DistributionLabSettings& settings,
                                      const DistributionLabSnapshot* snapshot) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 gap = ImGui::GetStyle().ItemSpacing;
  const bool two_columns = room.x > 44 * ImGui::GetFontSize();
  const ImVec2 size = two_columns ? ImVec2{(room.x - gap.x) / 2, (room.y - gap.y) / 2}
                                  : ImVec2{room.x, std::max(14 * ImGui::GetFontSize(), (room.y - 3 * gap.y) / 4)};
  int drawn = 0;
  const auto draw_one = [&](const char* caption, const auto& plot) {
    if (two_columns && drawn++ % 2 == 1) ImGui::SameLine();
    with_caption(caption, size, plot);
  };
  const bool filters_first = settings.filters_first && snapshot != nullptr;
  if (filters_first)
    draw_one("Where p has no bar the filter dropped the token. Those left are divided by their sum.",
             [&](ImVec2 room_of_plot) { plot_filtered(*snapshot, room_of_plot); });
  draw_one("What target and drafter say of the next token, before temperature and filters.",
           [&](ImVec2 room_of_plot) { draw_given_rows(controls, settings, room_of_plot); });
  if (snapshot == nullptr) return;
  draw_one("Green and orange end at p, whatever q is. Grey has the mass of orange.",
           [&](ImVec2 room_of_plot) { plot_stacks(*snapshot, room_of_plot); });
  const bool has_lossy = settings.lossy && !snapshot->lossy.empty();
  if (!filters_first || !has_lossy)
    draw_one("Where the bars reach the points, the output follows p.",
             [&](ImVec2 room_of_plot) { plot_emitted(*snapshot, look_, room_of_plot); });
  if (has_lossy)
    return draw_one("Further up is faster, further right is further from p. chain is exact; of fly the bound.",
                    [&](ImVec2 room_of_plot) { plot_lossy(snapshot->lossy, room_of_plot); });
  if (filters_first) return;
  draw_one("Biased once the p-value falls below the level; a distance above the detectable one would be found.",
           [&](ImVec2 room_of_plot) { plot_test(*snapshot, look_, room_of_plot); });
}

void DistributionLabPanel::draw_body(Controls& controls, DistributionLabSettings& settings,
                                     const DistributionLabSnapshot* snapshot) {
  advance_look(snapshot);
  const float em = ImGui::GetFontSize();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool wide = room.x > 52 * em;
  if (ImGui::BeginChild("controls", wide ? ImVec2{22 * em, 0} : ImVec2{0, std::min(0.4f * room.y, 20 * em)}))
    draw_controls(controls, settings, snapshot);
  ImGui::EndChild();
  if (wide) ImGui::SameLine();
  if (ImGui::BeginChild("plots")) draw_plots(controls, settings, snapshot);
  ImGui::EndChild();
}

}  // namespace draftproof
