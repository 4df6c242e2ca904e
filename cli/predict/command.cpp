// draftproof predict: when does speculation pay, with what K or tree, and from which load on not?
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/files/run_folder.hpp"
#include "base/printable.hpp"
#include "cli/predict/options.hpp"
#include "cli/predict/report.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"
#include "sim/predict/prediction_json.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

constexpr const char* kResultName = "predict.json";
constexpr const char* kFigureName = "predict.svg";

// Over all batch sizes that were looked at.
Prediction curve_of(const PredictionRequest& asked, const Prediction& prediction) {
  PredictionRequest request = asked;
  request.batches.resize(1);  // at which a measured step was, if it does not say
  request.compared_drafters.clear();
  request.compare_guidance = false;
  request.measured.clear();
  for (int batch = 1; batch <= std::max<std::int64_t>(prediction.looked_up_to, 2); batch += std::max(1, batch / 4))
    request.batches.push_back(batch);
  Prediction curve = answer(request).prediction;
  curve.batches.erase(curve.batches.begin());
  return curve;
}

void write_files(const PredictArguments& arguments, const PredictionReport& report, Json& document) {
  RunFolder folder(arguments.out, {kResultName, kFigureName});
  document["files"] = {{"result", folder.final_path(kResultName)}, {"figure", nullptr}};
  std::string no_figure;
  try {
    write_figure(folder.staged(kFigureName), prediction_figure(report, curve_of(arguments.request, report.prediction)));
    document["files"]["figure"] = folder.final_path(kFigureName);
  } catch (const Error& error) {
    no_figure = folder.with_final_paths(error.what());
  }
  folder.write([&] { write_json_file(folder.staged(kResultName), document); });
  folder.commit();
  if (!no_figure.empty()) print_message("warning", "no figure: " + no_figure);
}

void run(const PredictArguments& given, const ProgramContext& context) {
  PredictArguments arguments = given;
  if (arguments.no_trees) arguments.request.trees.clear();
  const PredictionReport report = answer(arguments.request);
  Json document = json_document(context.arguments);
  document.update(prediction_json(report));
  document["files"] = {{"result", nullptr}, {"figure", nullptr}};
  if (!arguments.out.empty()) write_files(arguments, report, document);
  if (arguments.json) return print_json(document);
  print_prediction(std::cout, report);
  if (!arguments.out.empty()) std::cout << "written to " << printable_line(arguments.out) << '\n';
}

}  // namespace

void add_predict(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<PredictArguments>();
  add_predict_options(options, *arguments);
  options.examples({"--model Llama-3.1-8B --gpu H100 --drafter EAGLE-3",
                    "--model Llama-3.1-8B --gpu A100 --drafter n-gram --acceptance constant:0.6 --batch 1,8,32"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
