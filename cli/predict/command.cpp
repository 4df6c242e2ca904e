// draftproof predict: when does speculation pay, with what K or tree, and from which load on not?
#include <iostream>
#include <memory>

#include "cli/predict/options.hpp"
#include "cli/predict/report.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/terminal.hpp"
#include "reference/error.hpp"
#include "reference/files/figure.hpp"
#include "reference/files/run_folder.hpp"
#include "reference/printable.hpp"
#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/import/read_acceptance.hpp"
#include "sim/predict/measured_steps.hpp"
#include "sim/predict/prediction.hpp"

namespace draftproof {
namespace {

constexpr const char* kResultName = "predict.json";
constexpr const char* kFigureName = "predict.svg";

RooflineSetup setup_of(const PredictArguments& a) {
  RooflineSetup setup;
  setup.model = find_model(a.model);
  setup.gpu = find_gpu(a.gpu);
  setup.engine = find_engine(a.engine);
  setup.precision = precision_of(a.precision.empty() ? a.model : a.precision);
  setup.draft_precision = precision_of(a.draft_precision);
  setup.drafter = find_drafter(a.drafter, setup.model);
  const double least = least_tp(setup.model, setup.gpu, setup.precision);
  setup.tp = a.tp ? *a.tp : least;
  if (setup.tp < least)
    throw usage_error("--tp", "is " + std::to_string(*a.tp) + "; expected at least " +
                                  std::to_string(static_cast<int>(least)) + ", since the weights of " +
                                  printable_line(setup.model.name) + " do not fit fewer of these GPUs");
  return setup;
}

AcceptanceEstimate acceptance_of(const PredictArguments& a, const Drafter& drafter) {
  if (!a.metrics.empty() && !a.acceptance.empty())
    throw usage_error("--acceptance", "is given beside --metrics; expected one of them");
  if (!a.metrics.empty())
    return AcceptanceEstimate::of_data(
        read_acceptance(a.metrics, {a.metrics_name, a.metrics_rates == "as said" ? "" : a.metrics_rates}),
        a.metrics_drafts);
  if (!a.acceptance.empty())
    return AcceptanceEstimate::of_model(make_acceptance(a.acceptance, 0, "--acceptance"), a.acceptance);
  return AcceptanceEstimate::typical_of(drafter);
}

PredictOptions options_of(const PredictArguments& a, const std::string& engine) {
  PredictOptions options;
  options.batches.assign(a.batches.begin(), a.batches.end());
  options.context = a.context;
  options.guidance = a.guidance;
  options.drafts_max = a.drafts_max;
  options.tree_nodes.assign(a.trees.begin(), a.trees.end());
  if (a.no_trees) options.tree_nodes.clear();
  options.engine_takes_trees = !engine.starts_with("vLLM");
  return options;
}

void write_files(const PredictArguments& a, const PredictionInputs& inputs, const MachineCalibration& machine,
                 const AcceptanceEstimate& acceptance, const StepRatioScatter& scatter, const Prediction& prediction,
                 Json& document) {
  RunFolder folder(a.out, {kResultName, kFigureName});
  document["files"] = {{"result", folder.final_path(kResultName)}, {"figure", nullptr}};
  PredictOptions dense = inputs.options;
  dense.batches.clear();
  for (std::int64_t batch = 1; batch <= std::max<std::int64_t>(prediction.looked_up_to, 2);
       batch += std::max<std::int64_t>(1, batch / 4))
    dense.batches.push_back(batch);
  try {
    write_figure(folder.staged(kFigureName), prediction_figure(inputs, predict(machine, acceptance, scatter, dense)));
    document["files"]["figure"] = folder.final_path(kFigureName);
  } catch (const Error& error) {
    print_message("warning", folder.with_final_paths(error.what()));
  }
  write_json_file(folder.staged(kResultName), document);
  folder.commit();
}

void run(const PredictArguments& a, const ProgramContext& context) {
  PredictionInputs inputs;
  const RooflineSetup preset = setup_of(a);
  inputs.options = options_of(a, preset.engine.name);
  const AcceptanceEstimate acceptance = acceptance_of(a, *preset.drafter);
  const BatchLoad load{inputs.options.batches.front(), inputs.options.context, inputs.options.guidance};
  for (const std::string& text : a.calibrate_with)
    inputs.measured.push_back(read_measured_step(text, load, "--calibrate-with"));
  const MachineCalibration machine(preset, inputs.measured);
  inputs.setup = machine.setup();
  inputs.acceptance = acceptance.description();
  if (!preset.model.assumption.empty()) inputs.notes.push_back(preset.model.assumption);
  inputs.notes.insert(inputs.notes.end(), acceptance.notes().begin(), acceptance.notes().end());
  if (!inputs.options.engine_takes_trees && !inputs.options.tree_nodes.empty() && acceptance.knows_trees())
    inputs.notes.push_back(preset.engine.name +
                           " verifies chains: trees are shown for comparison and are not advised.");
  inputs.residuals_before = machine.residuals_before();
  inputs.residuals_after = machine.residuals_after();

  const StepRatioScatter scatter = scatter_of(preset, shipped_fit());
  const Prediction prediction = predict(machine, acceptance, scatter, inputs.options);
  Json document = json_document(context.arguments);
  document.update(prediction_json(inputs, prediction));
  document["files"] = {{"result", nullptr}, {"figure", nullptr}};
  if (!a.out.empty()) write_files(a, inputs, machine, acceptance, scatter, prediction, document);
  if (a.json) return print_json(document);
  print_prediction(std::cout, inputs, prediction);
  if (!a.out.empty()) std::cout << "written to " << printable_line(a.out) << '\n';
}

}  // namespace

void add_command(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<PredictArguments>();
  add_predict_options(options, *arguments);
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
