#include "sim/predict/prediction_request.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/cost/quantization.hpp"

namespace draftproof {
namespace {

constexpr const char* kTypical = "typical";

// The files of a request by their paths, each read once.
class Shelf {
 public:
  explicit Shelf(ImportOptions options) : options_(std::move(options)) {}
  const SeenLog& log(const std::string& path) {
    const auto found = logs_.find(path);
    return found != logs_.end() ? found->second : logs_.emplace(path, see_log(path, options_)).first->second;
  }

 private:
  ImportOptions options_;
  std::map<std::string, SeenLog> logs_;
};

// The engine named by a server's first lines, else by the format of what it wrote; empty: neither.
std::string engine_said_by(const SeenLog& log) {
  if (log.server.found()) return log.server.engine;
  for (const EngineProfile& preset : engine_presets()) {
    const auto is_said = [&](const std::string& name) {  // "SGLang log", "Prometheus text (LMDeploy)"
      return log.format.starts_with(name + " ") || log.format.find("(" + name + ")") != std::string::npos;
    };
    if (is_said(preset.name) || std::ranges::any_of(preset.aliases, is_said)) return preset.name;
  }
  return "";
}

// Takes values from the log where the request leaves its default.
void take_from_log(const SeenLog& log, PredictionRequest& request) {
  const PredictionRequest usual;
  const ServerSetup& server = log.server;
  const auto take = [&](auto PredictionRequest::*value, const auto& of_log, bool said) {
    if (said && request.*value == usual.*value) request.*value = of_log;
  };
  std::error_code ignored;
  const bool has_config = std::filesystem::exists(request.model, ignored);  // it says what the log leaves open
  take(&PredictionRequest::model, log.model(), !log.model().empty());
  if (request.precision.empty() && server.precision_error && !has_config) throw *server.precision_error;
  take(&PredictionRequest::precision, server.precision, !server.precision.empty());
  request.tp_is_of_log = !request.tp && server.tp;
  take(&PredictionRequest::tp, server.tp, server.tp.has_value());
  take(&PredictionRequest::dp, server.dp, server.dp > 1);
  take(&PredictionRequest::pp, server.pp, server.pp > 1);
  take(&PredictionRequest::expert_parallel, true, server.expert_parallel);
  const std::string engine = engine_said_by(log);
  take(&PredictionRequest::engine, engine, !engine.empty());
  take(&PredictionRequest::drafter, server.drafter, !server.drafter.empty());
  if (log.step)
    take(&PredictionRequest::batches, std::vector<int>{static_cast<int>(log.step->batch.batch)}, true);
  else if (log.acceptance && log.acceptance->load)
    take(&PredictionRequest::batches, std::vector<int>{static_cast<int>(*log.acceptance->load)}, true);
  if (request.drafter == server.drafter || server.drafter.empty()) {
    if (log.acceptance && request.metrics.empty() && request.acceptance.empty()) request.metrics = request.log;
    if (server.drafts && request.metrics == request.log && !request.metrics_drafts)
      request.metrics_drafts = server.drafts;
  }
  const auto require = [&](const char* option, const std::string& value, const char* what) {
    const char* const said =
        server.found() || &value == &request.gpu ? " does not say it" : " has no line of a server's start that says it";
    if (value.empty()) throw usage_error(option, "is missing, and " + log.name + said + "; expected " + what);
  };
  require("--model", request.model, "the model's name");
  require("--gpu", request.gpu, "the GPU's name, which no server logs");
  require("--drafter", request.drafter, kDrafterExpected);
  if (request.metrics.empty() && request.acceptance.empty())
    throw usage_error("--acceptance", "is missing, and " + log.name + " has no acceptance of " +
                                          printable_line(request.drafter) +
                                          "; expected --metrics FILE, an acceptance model, or typical: the median of "
                                          "published rates of such drafters");
}

// The precision asked for, else the model's own, which a name does not decide: one that names another precision is
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

PredictOptions options_of(const PredictionRequest& request) {
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
  if (!request.ahead.empty()) options.ahead = parse_ahead(request.ahead, "--ahead");
  options.drafts_max = request.drafts_max;
  options.tree_nodes.assign(request.trees.begin(), request.trees.end());
  options.engine_takes_trees = !find_engine(request.engine).name.starts_with("vLLM");
  return options;
}

double requests_held(const RooflineSetup& setup, const PredictOptions& options) {
  return requests_held(setup, static_cast<double>(options.context), options.guidance ? 2.0 : 1.0);
}

// From the least that holds the weights on, as many as hold so many requests beside them; else one of them; else the
// weights alone.
double tp_of_load(RooflineSetup setup, double least, int batch, const PredictOptions& options) {
  for (const double requests : {static_cast<double>(batch), 1.0})
    for (double tp = least; tp <= std::max(8.0, 2.0 * least); tp *= 2.0) {
      setup.tp = tp;
      if (requests_held(setup, options) >= requests) return tp;
    }
  return least;
}

RooflineSetup setup_of(const PredictionRequest& request, const PredictOptions& options) {
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
  if ((request.draft_tp || !request.draft_gpu.empty()) && setup.drafter->kind == DraftingKind::ngram)
    throw usage_error(request.draft_tp ? "--draft-tp" : "--draft-gpu",
                      "has no use with drafter " + printable_line(request.drafter) + ", which runs on the CPU");
  if (!request.draft_gpu.empty()) setup.draft_gpu = find_gpu(request.draft_gpu);
  if (!request.ahead.empty() && !setup.draft_gpu)
    throw usage_error("--ahead", "drafts while the target verifies; expected --draft-gpu, devices of its own");
  setup.draft_tp = request.draft_tp.value_or(0);
  setup.draft_cost_factor = request.draft_cost_factor;
  setup.dp = request.dp;
  setup.pp = request.pp;
  // A log says it of groups that share the GPUs, whatever the model.
  setup.expert_parallel = request.expert_parallel && (request.log.empty() || setup.model.is_moe());
  if (setup.expert_parallel && !setup.model.is_moe())
    throw usage_error("--expert-parallel",
                      "has no use with " + printable_line(setup.model.name) + ", which has no experts");
  if (setup.pp > setup.model.layers)
    throw usage_error("--pp", "is " + std::to_string(request.pp) + "; expected at most the " +
                                  std::to_string(static_cast<int>(setup.model.layers)) + " layers of " +
                                  printable_line(setup.model.name));
  const double least = least_tp(setup);
  setup.tp = request.tp ? *request.tp : tp_of_load(setup, least, *std::ranges::min_element(request.batches), options);
  if (setup.tp < least) {
    RooflineSetup with_fp8 = setup;
    with_fp8.precision = precision_of("fp8");
    const double in_fp8 = least_tp(with_fp8);
    throw usage_error("--tp", (request.tp_is_of_log ? "is said by the log to be " : "is ") +
                                  std::to_string(*request.tp) + "; expected at least " +
                                  std::to_string(static_cast<int>(least)) + ", since the " + name_of(setup.precision) +
                                  " of " + printable_line(setup.model.name) + " do not fit fewer of these GPUs" +
                                  (in_fp8 <= setup.tp ? ", or --precision fp8" : ""));
  }
  if (!setup.draft_gpu && setup.draft_gpus() > setup.tp)
    throw usage_error("--draft-tp", "is " + std::to_string(*request.draft_tp) + "; expected at most the " +
                                        std::to_string(static_cast<int>(setup.tp)) +
                                        " GPUs of the target, or --draft-gpu");
  return setup;
}

AcceptanceEstimate acceptance_of(const PredictionRequest& request, const DrafterShape& drafter, Shelf& shelf) {
  if (!request.metrics.empty() && !request.acceptance.empty())
    throw usage_error("--acceptance", "is given beside --metrics; expected one of them");
  if (!request.metrics.empty()) {
    const SeenLog& log = shelf.log(request.metrics);
    if (!log.acceptance)
      throw input_error(log.name, "has no acceptance of drafts; expected the log of a server that speculates");
    const std::string format = "has no use with " + log.name + ", which is a " + log.acceptance->format;
    if (!request.metrics_name.empty() && !log.acceptance->takes_choice) throw usage_error("--metrics-name", format);
    if (request.metrics_rates != "as said" && !log.acceptance->takes_rates)
      throw usage_error("--metrics-rates", format);
    return AcceptanceEstimate::of_data(*log.acceptance, request.metrics_drafts);
  }
  if (request.acceptance.empty() || request.acceptance == kTypical) return AcceptanceEstimate::typical_of(drafter);
  return AcceptanceEstimate::of_model(make_acceptance(request.acceptance, 0, "--acceptance"), request.acceptance);
}

// Prompts for outputs as a server's log has them: a loop of requests of this context in which they are in that ratio.
LoopLengths lengths_of(double prompt_per_output, std::int64_t context) {
  const double output = static_cast<double>(context) / (prompt_per_output + 0.5);
  const LoopLengths lengths{std::llround(prompt_per_output * output), std::llround(output)};
  return lengths.prompt > 0 && lengths.output > 0 ? lengths : LoopLengths{};
}

std::vector<CheckedStep> steps_of(const PredictionInputs& inputs, Shelf& shelf) {
  const PredictionRequest& request = inputs.request;
  const BatchLoad load{inputs.options.batches.front(), inputs.options.context, inputs.options.guidance};
  const auto at_load = [&](MeasuredStep step) {
    step.batch.context = load.context;
    step.batch.guidance = load.guidance;
    return step;
  };
  std::vector<CheckedStep> steps;
  for (const std::string& text : request.calibrate_with) {
    MeasuredStep step;
    if (is_step_time(text)) {
      step = read_measured_step(text, load, "--calibrate-with");
    } else {
      const SeenLog& log = shelf.log(text);
      if (!log.step)
        throw input_error(log.name,
                          names_two_dumps(text)
                              ? "does not say how long steps took; expected vllm:inter_token_latency_seconds, "
                                "vllm:iteration_tokens_total and vllm:generation_tokens_total in both dumps"
                              : "has no line of throughput with running requests; expected a log of a server under "
                                "load");
      step = at_load(*log.step);
    }
    steps.push_back(checked_step(inputs.preset, step));
    if (!steps.back().refusal.empty() && !request.calibrate_anyway)
      throw usage_error("--calibrate-with", printable_line(text) + " says " + steps.back().text() + "; " +
                                                steps.back().refusal + ". --calibrate-anyway takes it");
  }
  if (steps.empty() && inputs.seen && inputs.seen->step)
    steps.push_back(checked_step(inputs.preset, at_load(*inputs.seen->step)));
  if (request.calibrate_anyway)
    for (CheckedStep& step : steps) step.refusal.clear();
  return steps;
}

std::vector<MeasuredStep> used_steps(const std::vector<CheckedStep>& steps) {
  std::vector<MeasuredStep> used;
  for (const CheckedStep& step : steps)
    if (step.refusal.empty()) used.push_back(step.step);
  return used;
}

// How long the target's GPUs wait for a drafter that is not on all of them.
std::string waiting_text(const PredictionReport& report) {
  const RooflineSetup& setup = report.setup;
  const BatchPrediction& batch = report.prediction.batches.front();
  const PredictionRow& row = batch.rows[batch.best_chain];
  const Roofline cost(setup);
  const DraftLoad load =
      drafting({batch.batch, report.options.context, report.options.guidance}, row.form, setup.drafter->kind);
  const double step_ms = row.step_ratio * batch.plain_ms;
  const double waits = cost.draft_ns(load) * 1e-6 / step_ms;
  const auto gpus = static_cast<int>(setup.draft_gpus());
  return "The drafter is on " + std::to_string(gpus) +
         (setup.draft_gpu ? " " + setup.draft_gpu->name + " of its own" : " of the target's GPUs") + ": at batch " +
         std::to_string(batch.batch) + ", " + name_of(row.form) + ", the " + (setup.draft_gpu ? "target's" : "others") +
         number(" wait %.0f %% of a step", 100.0 * waits) + number(" of %.1f ms", step_ms) +
         (setup.draft_gpu ? number(", its own %.0f %%", 100.0 * (1.0 - waits)) : "") +
         number("; transfers take %.3f ms of it", cost.draft_transfer_ns(load) * 1e-6);
}

std::vector<std::string> notes_of(const PredictionInputs& inputs) {
  std::vector<std::string> notes;
  const AcceptanceEstimate& acceptance = inputs.acceptance;
  if (!inputs.preset.model.assumption.empty()) notes.push_back(inputs.preset.model.assumption);
  notes.insert(notes.end(), acceptance.notes().begin(), acceptance.notes().end());
  if (!inputs.request.tp) {
    const double held = requests_held(inputs.preset, inputs.options);
    const int most = *std::ranges::max_element(inputs.request.batches);
    const double needed = tp_of_load(inputs.preset, inputs.preset.tp, most, inputs.options);
    if (held < most)
      notes.push_back(
          number("TP %.0f is the least that holds the weights", inputs.preset.tp) +
          number(" and the cache of %.0f requests", held) + ": batch " + std::to_string(most) +
          (needed > inputs.preset.tp ? number(" takes --tp %.0f.", needed) : " takes more GPUs, or fewer bits."));
  }
  const DraftCount& count = inputs.preset.drafter->count;
  if (count.drafts > 0 && count.drafts < inputs.options.drafts_max)
    notes.push_back(count.said + (count.repeats
                                      ? ": drafts behind run the last of its layers again, for which it is not trained."
                                      : ": longer drafts are not looked at."));
  if (!inputs.options.engine_takes_trees && !inputs.options.tree_nodes.empty() && acceptance.knows_trees())
    notes.push_back(inputs.preset.engine.name +
                    " verifies chains: trees are shown for comparison and are not advised.");
  return notes;
}

// Checks the drafts of steps that a server ran, or that are to be calibrated with.
void require_drafts(const DrafterShape& drafter, const char* option, std::int32_t drafts) {
  const DraftCount& count = drafter.count;
  if (count.drafts > 0 && !count.repeats && drafts > count.drafts)
    throw usage_error(option, "is of K = " + std::to_string(drafts) + ", and " + printable_line(drafter.name) +
                                  " drafts at most " + std::to_string(count.drafts) + ", since " + count.said +
                                  "; expected the head that ran, or no more drafts");
}

ComparedPrediction compared_with(const std::string& drafter, bool guidance, const RooflineSetup& setup,
                                 const AcceptanceEstimate& acceptance, const PredictOptions& options) {
  PredictOptions other = options;
  other.guidance = guidance;
  other.running_drafts.reset();  // of another drafter
  return {drafter, guidance, acceptance.description(),
          predict(MachineCalibration(setup, {}), acceptance, scatter_of(setup, shipped_fit()), other)};
}

}  // namespace

PredictionInputs inputs_of(const PredictionRequest& asked) {
  PredictionRequest request = asked;
  Shelf shelf({request.metrics_name, request.metrics_rates == "as said" ? "" : request.metrics_rates, false,
               request.metrics_drafts.value_or(0)});
  std::optional<SeenLog> seen;
  if (!request.log.empty()) {
    seen = shelf.log(request.log);
    take_from_log(*seen, request);
  }
  const PredictOptions options = options_of(request);
  const RooflineSetup preset = setup_of(request, options);
  PredictionInputs inputs{request, seen,  preset, acceptance_of(request, *preset.drafter, shelf),
                          options, false, {},     MachineCalibration(preset, {}),
                          {},      {}};
  inputs.acceptance.set_factor(request.acceptance_factor);
  if (seen && request.prompt == 0 && seen->prompt_per_output > 0.0) {
    inputs.options.lengths = lengths_of(seen->prompt_per_output, inputs.options.context);
    inputs.prefills_of_log = inputs.options.lengths.prompt > 0;
  }
  if (!request.metrics.empty()) inputs.options.running_drafts = shelf.log(request.metrics).running_drafts();
  if (inputs.options.running_drafts) require_drafts(*preset.drafter, "--metrics", *inputs.options.running_drafts);
  if (request.metrics_drafts) require_drafts(*preset.drafter, "--metrics-drafts", *request.metrics_drafts);
  inputs.steps = steps_of(inputs, shelf);
  for (const CheckedStep& step : inputs.steps)
    require_drafts(*preset.drafter, "--calibrate-with", step.step.form.depth);
  inputs.machine = MachineCalibration(preset, used_steps(inputs.steps));
  if (!request.measured.empty()) inputs.points = read_speedup_points(request.measured, preset);
  inputs.notes = notes_of(inputs);
  if (!request.metrics.empty() && shelf.log(request.metrics).knows_least_drafts() &&
      inputs.acceptance.positions_known().value_or(0) > 0)
    inputs.notes.push_back("No row is marked as the one that runs: K is at least " +
                           std::to_string(shelf.log(request.metrics).acceptance->draft_len) +
                           ", and nothing says it; --metrics-drafts K does.");
  return inputs;
}

Prediction prediction_at(const PredictionInputs& inputs, const std::vector<std::int64_t>& batches) {
  PredictOptions options = inputs.options;
  options.batches = batches;
  return predict(inputs.machine, inputs.acceptance, scatter_of(inputs.preset, shipped_fit()), options);
}

PredictionReport answer(const PredictionInputs& inputs, const std::function<void()>& check) {
  PredictionReport report;
  const PredictionRequest& request = inputs.request;
  check();
  report.seen = inputs.seen;
  report.setup = inputs.machine.setup();
  report.acceptance = inputs.acceptance.description();
  report.acceptance_factor = request.acceptance_factor;
  report.notes = inputs.notes;
  report.options = inputs.options;
  report.prefills_of_log = inputs.prefills_of_log;
  report.steps = inputs.steps;
  report.over_calibrated = inputs.machine.residuals_after();
  report.points = inputs.points;
  report.prediction = prediction_at(inputs, inputs.options.batches);
  if ((report.setup.draft_gpu || report.setup.draft_tp > 0.0) && !report.options.ahead.is_on())
    report.notes.push_back(waiting_text(report));
  check();
  if (request.compare_guidance)
    report.compared.push_back(
        compared_with(inputs.preset.drafter->name, !request.guidance, report.setup, inputs.acceptance, report.options));
  for (const std::string& name : request.compared_drafters) {
    check();
    RooflineSetup setup = report.setup;
    setup.drafter = find_drafter(name, setup.model);
    if (request.draft_precision.empty()) setup.draft_precision = setup.drafter->shape.precision;
    PredictOptions options = report.options;
    if (setup.drafter->kind == DraftingKind::ngram) {  // on the CPU, before the target verifies
      setup.draft_gpu.reset();
      setup.draft_tp = 0;
      options.ahead = {};
    }
    AcceptanceEstimate typical = AcceptanceEstimate::typical_of(*setup.drafter);
    typical.set_factor(request.acceptance_factor);
    report.compared.push_back(compared_with(setup.drafter->name, request.guidance, setup, typical, options));
  }
  return report;
}

PredictionReport answer(const PredictionRequest& request, const std::function<void()>& check) {
  return answer(inputs_of(request), check);
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

}  // namespace draftproof
