#include "sim/predict/prediction_request.hpp"

#include <algorithm>
#include <filesystem>

#include "base/archives/text_file.hpp"
#include "base/error.hpp"
#include "base/json_values.hpp"
#include "base/printable.hpp"
#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/cost/quantization.hpp"
#include "sim/import/read_acceptance.hpp"
#include "sim/import/server_setup.hpp"
#include "sim/import/text_lines.hpp"
#include "sim/predict/machine_calibration.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kServerLogBytesMax = std::uint64_t{1} << 30;

// What the log says, in the place of what the request leaves at its default; in words, for people.
std::string take_from_log(PredictionRequest& request) {
  const PredictionRequest usual;
  const std::string& log = request.log;
  const bool dumps = names_two_dumps(log);  // which say nothing of the server
  const std::string text = dumps ? "" : read_text(log, kServerLogBytesMax);
  const std::string name = log == "-" ? "standard input" : printable_line(log);
  const ServerSetup server = read_server_setup(text, name);
  std::string found;
  const auto take = [&](auto& value, const auto& usual_value, const auto& of_log, const std::string& words) {
    if (!(value == usual_value) || words.empty()) return;
    value = of_log;
    found += (found.empty() ? "" : ", ") + words;
  };
  std::error_code ignored;
  const bool has_config = std::filesystem::exists(request.model, ignored);  // it says what the log leaves open
  take(request.model, usual.model, server.model, server.model);
  if (request.precision.empty() && server.precision_error && !has_config) throw *server.precision_error;
  take(request.precision, usual.precision, server.precision, server.precision);
  if (server.tp)
    take(request.tp, usual.tp, server.tp, std::to_string(*server.tp) + (*server.tp == 1 ? " GPU" : " GPUs"));
  if (server.dp > 1) take(request.dp, usual.dp, server.dp, "DP " + std::to_string(server.dp));
  if (server.pp > 1) take(request.pp, usual.pp, server.pp, "PP " + std::to_string(server.pp));
  if (server.expert_parallel) take(request.expert_parallel, usual.expert_parallel, true, "experts over all GPUs");
  take(request.engine, usual.engine, server.engine, server.engine);
  take(request.drafter, usual.drafter, server.drafter, server.drafter);
  const bool drafts = !server.found() || !server.drafter.empty();
  if (drafts && request.metrics.empty() && request.acceptance.empty() && holds_acceptance(log)) {
    request.metrics = log;
    if (server.drafts && !request.metrics_drafts) request.metrics_drafts = server.drafts;
    found += (found.empty() ? "" : ", ") + std::string("its acceptance");
  }
  const bool timed = dumps ? !read_acceptance(log, {request.metrics_name, ""}).throughput.empty()
                           : has_words(text, "Avg generation throughput") || has_words(text, "gen throughput");
  if (timed && server.dp == 1) {  // of several groups each logs its own load
    const MeasuredStep step = read_measured_step(log, {}, "--calibrate-with");
    take(request.batches, usual.batches, std::vector<int>{static_cast<int>(step.batch.batch)},
         "the load of " + std::to_string(step.batch.batch) + " requests at a time");
    take(request.calibrate_with, usual.calibrate_with, std::vector<std::string>{log}, "the time of a step");
  }
  const auto require = [&](const char* option, const std::string& value, const char* what) {
    if (value.empty()) throw usage_error(option, "is missing, and " + name + " does not say it; expected " + what);
  };
  require("--model", request.model, "the model's name");
  require("--gpu", request.gpu, "the GPU's name, which no server logs");
  require("--drafter", request.drafter, "EAGLE-3, MTP, n-gram, ..., or a draft model");
  return found.empty() ? "Nothing that is needed stands in " + name + "." : "From " + name + ": " + found + ".";
}

// What is asked for, else the model's own, of which a name says nothing: one with the word of another precision is
// asked about.
Precision precision_of_request(const PredictionRequest& request, const ModelShape& model) {
  if (!request.precision.empty()) return stated_precision(request.precision, "--precision", model.precision);
  std::error_code ignored;
  const auto named = std::filesystem::exists(request.model, ignored) ? std::nullopt : format_in(request.model);
  if (named && named->name != model.precision.weights && named->name != model.precision.experts)
    throw usage_error("--precision", "is missing; " + in_quotes(request.model) + " may be a checkpoint of " +
                                         named->name + ", but a name decides nothing: expected --precision, or " +
                                         "--model with its config.json");
  return model.precision;
}

RooflineSetup setup_of(const PredictionRequest& request) {
  RooflineSetup setup;
  setup.model = find_model(request.model);
  setup.gpu = find_gpu(request.gpu);
  setup.engine = find_engine(request.engine);
  setup.precision = precision_of_request(request, setup.model);
  setup.drafter = find_drafter(request.drafter, setup.model);
  setup.draft_precision = request.draft_precision.empty()
                              ? setup.drafter->shape.precision
                              : stated_precision(request.draft_precision, "--draft-precision");
  if (!request.draft_precision.empty() && setup.drafter->kind == DraftingKind::ngram)
    throw usage_error("--draft-precision",
                      "has no use with drafter " + printable_line(request.drafter) + ", which has no weights");
  setup.draft_cost_factor = request.draft_cost_factor;
  setup.dp = request.dp;
  setup.pp = request.pp;
  setup.expert_parallel = request.expert_parallel;
  if (setup.expert_parallel && !setup.model.is_moe())
    throw usage_error("--expert-parallel",
                      "has no use with " + printable_line(setup.model.name) + ", which has no experts");
  if (setup.pp > setup.model.layers)
    throw usage_error("--pp", "is " + std::to_string(request.pp) + "; expected at most the " +
                                  std::to_string(static_cast<int>(setup.model.layers)) + " layers of " +
                                  printable_line(setup.model.name));
  const double least = least_tp(setup);
  setup.tp = request.tp ? *request.tp : least;
  if (setup.tp < least) {
    RooflineSetup with_fp8 = setup;
    with_fp8.precision = precision_of("fp8");
    const double in_fp8 = least_tp(with_fp8);
    throw usage_error("--tp", "is " + std::to_string(*request.tp) + "; expected at least " +
                                  std::to_string(static_cast<int>(least)) + ", since the " + name_of(setup.precision) +
                                  " of " + printable_line(setup.model.name) + " do not fit fewer of these GPUs" +
                                  (in_fp8 <= setup.tp ? ", or --precision fp8" : ""));
  }
  return setup;
}

AcceptanceEstimate acceptance_of(const PredictionRequest& request, const DrafterShape& drafter) {
  if (!request.metrics.empty() && !request.acceptance.empty())
    throw usage_error("--acceptance", "is given beside --metrics; expected one of them");
  if (!request.metrics.empty()) {
    const std::string rates = request.metrics_rates == "as said" ? "" : request.metrics_rates;
    const AcceptanceData data = read_acceptance(request.metrics, {request.metrics_name, rates});
    const std::string format = "has no use with " + printable_line(request.metrics) + ", which is a " + data.format;
    if (!request.metrics_name.empty() && !data.takes_choice) throw usage_error("--metrics-name", format);
    if (!rates.empty() && !data.takes_rates) throw usage_error("--metrics-rates", format);
    return AcceptanceEstimate::of_data(data, request.metrics_drafts);
  }
  if (!request.acceptance.empty())
    return AcceptanceEstimate::of_model(make_acceptance(request.acceptance, 0, "--acceptance"), request.acceptance);
  return AcceptanceEstimate::typical_of(drafter);
}

PredictOptions options_of(const PredictionRequest& request, const std::string& engine) {
  PredictOptions options;
  options.batches.assign(request.batches.begin(), request.batches.end());
  options.context = request.context;
  if ((request.prompt > 0) != (request.output > 0))
    throw usage_error(request.prompt > 0 ? "--output" : "--prompt",
                      "is missing; expected both --prompt and --output, tokens of a request");
  if (request.prompt > 0) {
    options.lengths = {request.prompt, request.output};
    options.context = request.prompt + std::max(1, request.output / 2);
  }
  options.guidance = request.guidance;
  options.drafts_max = request.drafts_max;
  options.tree_nodes.assign(request.trees.begin(), request.trees.end());
  options.engine_takes_trees = !engine.starts_with("vLLM");
  return options;
}

void add_notes(const RooflineSetup& preset, const AcceptanceEstimate& acceptance, PredictionReport& report) {
  if (!preset.model.assumption.empty()) report.notes.push_back(preset.model.assumption);
  report.notes.insert(report.notes.end(), acceptance.notes().begin(), acceptance.notes().end());
  if (!report.options.engine_takes_trees && !report.options.tree_nodes.empty() && acceptance.knows_trees())
    report.notes.push_back(preset.engine.name +
                           " verifies chains: trees are shown for comparison and are not advised.");
}

ComparedPrediction compared_with(const std::string& drafter, bool guidance, const RooflineSetup& setup,
                                 const AcceptanceEstimate& acceptance, const PredictOptions& options) {
  PredictOptions other = options;
  other.guidance = guidance;
  return {drafter, guidance, acceptance.description(),
          predict(MachineCalibration(setup, {}), acceptance, scatter_of(setup, shipped_fit()), other)};
}

using Json = nlohmann::ordered_json;

void set_form(Json& json, const DraftSize& form) {
  json["k"] = form.is_tree() ? Json(nullptr) : Json(form.depth);
  json["tree"] = form.is_tree() ? Json{{"nodes", form.nodes}, {"depth", form.depth}} : Json(nullptr);
}

Json pass_json(const PassTime& pass) {
  return {{"ms", pass.ms},
          {"floor_ms", pass.floor.ns() * 1e-6},
          {"intensity", pass.floor.intensity()},
          {"memory_bound", pass.floor.memory_bound()}};
}

Json row_json(const PredictionRow& row) {
  Json json;
  json["batch"] = row.batch;
  set_form(json, row.form);
  json["speedup"] = row.speedup;
  json["low"] = row.low;
  json["high"] = row.high;
  json["loss_probability"] = row.band().loss_probability();
  json["step_ratio"] = row.step_ratio;
  json["tokens_per_step"] = row.tokens_per_step;
  json["tokens_per_second"] = row.tokens_per_second;
  json["verify_pass"] = pass_json(row.verify);
  return json;
}

Json compared_json(const ComparedPrediction& compared) {
  Json json;
  json["drafter"] = compared.drafter;
  json["guidance"] = compared.guidance;
  json["acceptance"] = compared.acceptance;
  json["best"] = json_list(compared.prediction.batches,
                           [](const BatchPrediction& batch) { return row_json(batch.rows[batch.best]); });
  json["break_even_batch"] = or_null(compared.prediction.break_even);
  json["batch_max"] = compared.prediction.looked_up_to;
  return json;
}

Json points_json(const SpeedupPoints& points) {
  const auto point_json = [](const SpeedupPoint& point) -> Json {
    return {{"source", point.source},   {"drafter", point.drafter}, {"draft", point.draft}, {"batch", point.batch},
            {"speedup", point.speedup}, {"low", point.low},         {"high", point.high}};
  };
  return {{"path", points.path}, {"others", points.others}, {"points", json_list(points.points, point_json)}};
}

Json limits_json(const DraftLimits& limits) {
  Json json;
  set_form(json, limits.form);
  json["memory_bound_up_to"] = limits.memory_bound_up_to;
  json["break_even_batch"] = or_null(limits.break_even);
  return json;
}

}  // namespace

PredictionReport answer(const PredictionRequest& asked, const std::function<void()>& check) {
  PredictionReport report;
  PredictionRequest request = asked;
  if (!request.log.empty()) report.notes.push_back(take_from_log(request));
  const RooflineSetup preset = setup_of(request);
  check();
  report.options = options_of(request, preset.engine.name);
  AcceptanceEstimate acceptance = acceptance_of(request, *preset.drafter);
  acceptance.set_factor(request.acceptance_factor);
  report.acceptance_factor = request.acceptance_factor;
  const BatchLoad load{report.options.batches.front(), report.options.context, report.options.guidance};
  for (const std::string& text : request.calibrate_with)
    report.measured_steps.push_back(read_measured_step(text, load, "--calibrate-with"));
  const MachineCalibration machine(preset, report.measured_steps);
  report.setup = machine.setup();
  report.acceptance = acceptance.description();
  add_notes(preset, acceptance, report);
  report.residuals_before = machine.residuals_before();
  report.residuals_after = machine.residuals_after();
  if (!request.measured.empty()) report.points = read_speedup_points(request.measured, preset);
  check();
  report.prediction = predict(machine, acceptance, scatter_of(preset, shipped_fit()), report.options);
  check();
  if (request.compare_guidance)
    report.compared.push_back(
        compared_with(preset.drafter->name, !request.guidance, report.setup, acceptance, report.options));
  for (const std::string& name : request.compared_drafters) {
    check();
    RooflineSetup setup = report.setup;
    setup.drafter = find_drafter(name, setup.model);
    AcceptanceEstimate typical = AcceptanceEstimate::typical_of(*setup.drafter);
    typical.set_factor(request.acceptance_factor);
    report.compared.push_back(compared_with(setup.drafter->name, request.guidance, setup, typical, report.options));
  }
  return report;
}

std::string head_of(const PredictionReport& report) {
  const RooflineSetup& s = report.setup;
  const auto gpus = static_cast<std::int64_t>(s.gpus());
  std::string parallel;
  if (s.dp > 1.0) parallel += ", DP " + std::to_string(static_cast<int>(s.dp));
  if (s.pp > 1.0) parallel += ", PP " + std::to_string(static_cast<int>(s.pp));
  if (s.expert_parallel) parallel += ", experts over " + std::to_string(static_cast<int>(s.expert_gpus()));
  if (!parallel.empty()) parallel = " (TP " + std::to_string(static_cast<int>(s.tp)) + parallel + ")";
  return s.model.name + " (" + name_of(s.precision) + ") on " +
         (gpus > 1 ? std::to_string(gpus) + " x " : std::string()) + s.gpu.name + parallel + ", " + s.engine.name +
         ", drafter " + s.drafter->name;
}

nlohmann::ordered_json prediction_json(const PredictionReport& report) {
  const RooflineSetup& s = report.setup;
  const Prediction& prediction = report.prediction;
  Json json;
  json["model"] = s.model.name;
  json["gpu"] = s.gpu.name;
  json["tp"] = s.tp;
  json["dp"] = s.dp;
  json["pp"] = s.pp;
  json["expert_parallel"] = s.expert_parallel;
  json["precision"] = name_of(s.precision);
  json["engine"] = s.engine.name;
  json["drafter"] = s.drafter->name;
  json["context"] = report.options.context;
  json["prompt"] = report.options.lengths.prompt > 0 ? Json(report.options.lengths.prompt) : Json(nullptr);
  json["output"] = report.options.lengths.output > 0 ? Json(report.options.lengths.output) : Json(nullptr);
  json["guidance"] = report.options.guidance;
  json["acceptance"] = report.acceptance;
  json["acceptance_factor"] = report.acceptance_factor;
  json["draft_cost_factor"] = s.draft_cost_factor;
  json["notes"] = report.notes;
  Json measured = Json::array();
  for (std::size_t i = 0; i < report.measured_steps.size(); ++i) {
    const MeasuredStep& step = report.measured_steps[i];
    measured.push_back({{"ms", step.ms},
                        {"batch", step.batch.batch},
                        {"k", step.form.depth},
                        {"measured_over_preset", report.residuals_before[i]},
                        {"measured_over_calibrated", report.residuals_after[i]}});
  }
  json["calibration"] = measured;
  Json rows = Json::array();
  Json best = Json::array();
  for (const BatchPrediction& batch : prediction.batches) {
    for (const PredictionRow& row : batch.rows) rows.push_back(row_json(row));
    Json entry = row_json(batch.rows[batch.best]);
    entry["pays"] = batch.pays();
    entry["notes"] = batch.notes;
    entry["plain_ms"] = batch.plain_ms;
    entry["plain_tokens_per_second"] = batch.plain_tokens_per_second;
    entry["prefill_share"] = batch.prefill_share;
    entry["plain_pass"] = pass_json(batch.plain_pass);
    entry["best_k"] = row_json(batch.rows[batch.best_chain]);
    entry["best_tree"] = batch.best_tree ? row_json(batch.rows[*batch.best_tree]) : Json(nullptr);
    best.push_back(entry);
  }
  json["rows"] = rows;
  json["best"] = best;
  json["plain_best"] = json_list(prediction.plain_best, [](const LoadInterval& off) -> Json {
    return {{"from", off.from}, {"to", off.to}};
  });
  json["loss_possible_from"] = or_null(prediction.loss_possible_from);
  json["break_even_batch"] = or_null(prediction.break_even);
  json["break_even_low"] = or_null(prediction.break_even_low);
  json["break_even_high"] = or_null(prediction.break_even_high);
  json["batch_max"] = prediction.looked_up_to;
  json["batch_of_memory"] = prediction.batch_of_memory;
  json["ridge_intensity"] = prediction.ridge_intensity;
  json["drafts"] = json_list(prediction.drafts, limits_json);
  json["compared"] = json_list(report.compared, compared_json);
  json["measured"] = report.points ? points_json(*report.points) : Json(nullptr);
  json["load_advice"] = prediction.load_advice;
  json["advice"] = prediction.advice;
  return json;
}

}  // namespace draftproof
