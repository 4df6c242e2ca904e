#include "studies/serving/speedup_by_batch.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files/own_files.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "sim/predict/prediction_request.hpp"
#include "studies/figures/figure.hpp"
#include "studies/figures/table.hpp"
#include "studies/palette.hpp"

namespace draftproof {
namespace {

template <class Pass>
void add_pass(SpeedupCurve& curve, const Pass& pass, double ridge) {
  const double intensity = pass.floor.intensity();
  curve.intensity.push_back(intensity);
  curve.over_floor.push_back(pass.over_floor());
  curve.share_of_peak.push_back(std::min(1.0, intensity / ridge) / pass.over_floor());
}

std::string name_of_draft(const DraftSize& form) {
  return (form.is_tree() ? "tree of " : "K = ") + std::to_string(form.nodes);
}

void add_row(SpeedupCurve& curve, const PredictionRow& row, double ridge) {
  curve.batch.push_back(static_cast<double>(row.batch));
  curve.speedup.push_back(row.speedup);
  curve.low.push_back(row.low);
  curve.high.push_back(row.high);
  curve.step_ratio.push_back(row.step_ratio);
  curve.tokens_per_second.push_back(row.tokens_per_second);
  curve.draft.push_back(name_of_draft(row.form));
  add_pass(curve, row.verify, ridge);
}

SpeedupCurve best_curve(const Prediction& prediction, SpeedupCurve::Kind kind, const std::string& name) {
  SpeedupCurve curve;
  curve.kind = kind;
  curve.name = name;
  for (const BatchPrediction& batch : prediction.batches)
    add_row(curve, batch.rows[batch.best], prediction.ridge_intensity);
  curve.break_even = prediction.break_even;
  return curve;
}

// Curve of a chain of so many drafts, or of the trees of so many nodes.
SpeedupCurve curve_of(const Prediction& prediction, const DraftLimits& limits) {
  SpeedupCurve curve;
  const bool tree = limits.form.is_tree();
  curve.kind = tree ? SpeedupCurve::Kind::tree : SpeedupCurve::Kind::chain;
  curve.name = name_of_draft(limits.form);
  for (const BatchPrediction& batch : prediction.batches)
    for (const PredictionRow& row : batch.rows)
      if (row.form.is_tree() == tree && row.form.nodes == limits.form.nodes)
        add_row(curve, row, prediction.ridge_intensity);
  curve.break_even = limits.break_even;
  curve.memory_bound_up_to = limits.memory_bound_up_to;
  return curve;
}

SpeedupCurve plain_curve(const Prediction& prediction) {
  SpeedupCurve curve;
  curve.name = "plain decoding";
  for (const BatchPrediction& batch : prediction.batches) {
    curve.batch.push_back(static_cast<double>(batch.batch));
    curve.tokens_per_second.push_back(batch.plain_tokens_per_second);
    add_pass(curve, batch.plain_pass, prediction.ridge_intensity);
  }
  return curve;
}

bool is_shown(const DraftSize& form, const SpeedupByBatchSettings& settings) {
  if (form.is_tree()) return settings.show_trees;
  return std::ranges::find(settings.shown_drafts, form.depth) != settings.shown_drafts.end();
}

PredictionRequest with_batches(const SpeedupByBatchSettings& settings) {
  PredictionRequest request = settings.request;
  request.batches = curve_batches(settings.batch_max);
  return request;
}

PredictionRequest request_of(const char* model, const char* gpu, const char* drafter) {
  PredictionRequest request;
  request.model = model;
  request.gpu = gpu;
  request.drafter = drafter;
  request.trees = {16, 60};
  return request;
}

std::vector<SpeedupPreset> make_presets() {
  std::vector<SpeedupPreset> presets;
  presets.push_back({"70B with 8B drafts",
                     "The quoted points cross 1 near a batch of 100; watch where K = 5 does, and how much longer K = 1 "
                     "pays.",
                     {}});
  SpeedupByBatchSettings settings;
  settings.batch_max = 512;
  settings.request = request_of("Llama-3.1-8B", "H100", "EAGLE-3");
  settings.request.compared_drafters = {"n-gram", "Llama-3.2-1B"};
  presets.push_back(
      {"batch",
       "The best K shrinks as the batch grows: extra drafts are free while the GPU waits for memory; from "
       "the ridge on each costs time.",
       settings});
  settings.request = request_of("Llama-3.1-8B", "H100", "EAGLE-3");
  settings.request.compare_guidance = true;
  presets.push_back({"guidance on and off",
                     "Guidance doubles the rows that are verified: multiplications bound the pass at half the batch, "
                     "and the gain ends earlier.",
                     settings});
  settings.request = request_of("Qwen3-30B-A3B", "H100", "EAGLE-3");
  settings.request.compared_drafters = {"Qwen3-0.6B"};
  presets.push_back({"a mixture of experts",
                     "More rows touch more experts: at small batches every draft reads new weights, so the step ratio "
                     "rises at once.",
                     settings});
  settings.request = request_of("Llama-3.1-8B", "RTX 4090", "n-gram");
  settings.request.acceptance = "constant:0.6";
  settings.request.compared_drafters = {"EAGLE-3"};
  settings.batch_max = 64;
  presets.push_back(
      {"n-grams, RTX 4090",
       "Drafts from a table cost nothing, so even a low acceptance pays while the memory bounds the pass.", settings});
  return presets;
}

std::string colour_of(std::size_t series) {
  return palette::kSeries[series % palette::kSeries.size()].hex;
}

}  // namespace

PredictionRequest quoted_70b_request() {
  PredictionRequest request = request_of("Llama-3.1-70B", "H100", "Llama-3.1-8B");
  request.tp = 8;
  request.acceptance = "constant:0.78";
  request.context = 1150;  // of the quoted scenario: prompts of 1,000 and half of 300 tokens
  request.trees = {16};
  request.compared_drafters = {"EAGLE-3"};
  request.measured = own_file("experiments/speedup_by_batch/experiment.toml");
  return request;
}

const std::vector<SpeedupPreset>& speedup_presets() {
  static const std::vector<SpeedupPreset> presets = make_presets();
  return presets;
}

std::vector<int> curve_batches(int most) {
  std::vector<int> batches;
  for (int batch = 1; batch < most; batch += std::max(1, batch / 8)) batches.push_back(batch);
  batches.push_back(std::max(most, 1));
  return batches;
}

void compute(const SpeedupByBatchSettings& settings, Job& job, const PublishSpeedups& publish) {
  job.report(0.0, "predicting");
  SpeedupByBatchSnapshot snapshot;
  snapshot.settings = settings;
  snapshot.report = answer(with_batches(settings), [&] { job.check(); });
  const PredictionReport& report = snapshot.report;
  snapshot.head = head_of(report);
  snapshot.plain = plain_curve(report.prediction);
  snapshot.curves.push_back(best_curve(report.prediction, SpeedupCurve::Kind::best, "the best draft"));
  for (const DraftLimits& limits : report.prediction.drafts)
    if (is_shown(limits.form, settings)) snapshot.curves.push_back(curve_of(report.prediction, limits));
  for (const ComparedPrediction& compared : report.compared) {
    const bool same_drafter = compared.guidance != report.options.guidance;
    snapshot.curves.push_back(best_curve(
        compared.prediction, SpeedupCurve::Kind::compared,
        same_drafter ? (compared.guidance ? "with guidance" : "without guidance") : compared.drafter + ", best"));
  }
  publish(std::move(snapshot));
}

nlohmann::ordered_json to_json(const SpeedupByBatchSnapshot& snapshot) {
  return prediction_json(snapshot.report);
}

Table to_table(const SpeedupByBatchSnapshot& snapshot) {
  Table table;
  table.columns = {"curve",      "batch",        "speedup",           "low",
                   "high",       "step_ratio",   "tokens_per_second", "operations_per_byte",
                   "over_floor", "share_of_peak"};
  for (const SpeedupCurve& curve : snapshot.curves)
    for (std::size_t i = 0; i < curve.batch.size(); ++i)
      table.rows.push_back({curve.name, static_cast<std::int64_t>(curve.batch[i]), curve.speedup[i], curve.low[i],
                            curve.high[i], curve.step_ratio[i], curve.tokens_per_second[i], curve.intensity[i],
                            curve.over_floor[i], curve.share_of_peak[i]});
  return table;
}

std::string to_figure(const SpeedupByBatchSnapshot& snapshot) {
  std::ostringstream script;
  for (std::size_t c = 0; c < snapshot.curves.size(); ++c) {
    const SpeedupCurve& curve = snapshot.curves[c];
    script << "$curve" << c << " << EOD\n";
    for (std::size_t i = 0; i < curve.batch.size(); ++i)
      script << curve.batch[i] << ' ' << curve.speedup[i] << ' ' << curve.low[i] << ' ' << curve.high[i] << '\n';
    script << "EOD\n";
  }
  const auto& points = snapshot.report.points;
  const bool has_points = points && !points->points.empty();
  if (has_points) {
    script << "$points << EOD\n";
    for (const SpeedupPoint& point : points->points)
      script << point.batch << ' ' << point.speedup << ' ' << point.low << ' ' << point.high << '\n';
    script << "EOD\n";
  }
  script << "set title " << gnuplot_quoted(printable_line(snapshot.head)) << "\n"
         << "set logscale x 2\nset xlabel 'requests at a time (B)'\nset ylabel 'speedup over plain decoding'\n"
         << "set yrange [0:*]\nset grid ytics lc rgb '#dddddd'\nset key below\n";
  if (const auto off = snapshot.curves.front().break_even)
    script << "set arrow from " << *off << ", graph 0 to " << *off << ", graph 1 nohead dt 2 lc rgb '#7F7F7F'\n"
           << "set label 'off from " << *off << "' at " << *off << ", graph 0.95 right offset -1,0\n";
  script << "plot $curve0 using 1:3:4 with filledcurves fs transparent solid 0.2 lc rgb '" << colour_of(0)
         << "' title '80 % band of the best', 1 with lines lc rgb '#7F7F7F' dt 2 notitle";
  for (std::size_t c = 0; c < snapshot.curves.size(); ++c) {
    const SpeedupCurve& curve = snapshot.curves[c];
    script << ", $curve" << c << " using 1:2 with lines lw " << (c == 0 ? 3 : 1.5) << " dt "
           << (curve.kind == SpeedupCurve::Kind::compared ? 2
               : curve.kind == SpeedupCurve::Kind::tree   ? 3
                                                          : 1)
           << " lc rgb '" << colour_of(c) << "' title " << gnuplot_quoted(printable_line(curve.name));
  }
  if (has_points)
    script << ", $points using 1:2:3:4 with yerrorbars pt 7 ps 0.8 lc rgb '#000000' title 'measured or quoted'";
  script << "\n";
  return script.str();
}

std::vector<std::string> command_arguments(const SpeedupByBatchSettings& settings) {
  const PredictionRequest request = with_batches(settings);
  const PredictionRequest usual;
  std::vector<std::string> arguments{"draftproof", "predict"};
  const auto add = [&](const char* option, const std::string& value) {
    arguments.emplace_back(option);
    arguments.push_back(value);
  };
  const auto text_of = [](int value) { return std::to_string(value); };
  const auto add_unless = [&](const char* option, const std::string& value, const std::string& otherwise) {
    if (value != otherwise) add(option, value);
  };
  add("--model", request.model);
  add("--gpu", request.gpu);
  add_unless("--engine", request.engine, usual.engine);
  if (request.tp) add("--tp", std::to_string(*request.tp));
  add_unless("--dp", std::to_string(request.dp), "1");
  add_unless("--pp", std::to_string(request.pp), "1");
  if (request.expert_parallel) arguments.emplace_back("--expert-parallel");
  add("--drafter", request.drafter);
  add_unless("--precision", request.precision, "");
  add_unless("--draft-precision", request.draft_precision, "");
  if (request.draft_tp) add("--draft-tp", std::to_string(*request.draft_tp));
  add_unless("--draft-gpu", request.draft_gpu, "");
  add_unless("--metrics", request.metrics, "");
  add_unless("--metrics-name", request.metrics_name, "");
  if (request.metrics_drafts) add("--metrics-drafts", std::to_string(*request.metrics_drafts));
  add_unless("--metrics-rates", request.metrics_rates, usual.metrics_rates);
  add_unless("--acceptance", request.acceptance, "");
  add_unless("--context", std::to_string(request.context), std::to_string(usual.context));
  add_unless("--drafts-max", std::to_string(request.drafts_max), std::to_string(usual.drafts_max));
  if (request.trees.empty()) arguments.emplace_back("--no-trees");
  if (!request.trees.empty())
    add_unless("--tree-nodes", joined(request.trees, ",", text_of), joined(usual.trees, ",", text_of));
  if (request.guidance) arguments.emplace_back("--guidance");
  add_unless("--calibrate-with", joined(request.calibrate_with, ","), "");
  if (request.calibrate_anyway) arguments.emplace_back("--calibrate-anyway");
  add_unless("--acceptance-factor", json_number(request.acceptance_factor), json_number(1.0));
  add_unless("--draft-cost-factor", json_number(request.draft_cost_factor), json_number(1.0));
  add_unless("--compare-drafters", joined(request.compared_drafters, ","), "");
  if (request.compare_guidance) arguments.emplace_back("--compare-guidance");
  add_unless("--measured", request.measured, "");
  add("--batch", joined(request.batches, ",", text_of));
  return arguments;
}

}  // namespace draftproof
