// A prediction as a table, as JSON and as a figure.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "sim/predict/prediction.hpp"

namespace draftproof {

// What was predicted from.
struct PredictionInputs {
  RooflineSetup setup;
  std::string acceptance;
  std::vector<std::string> notes;
  PredictOptions options;
  std::vector<MeasuredStep> measured;
  std::vector<double> residuals_before, residuals_after;
};

void print_prediction(std::ostream& out, const PredictionInputs& inputs, const Prediction& prediction);
Json prediction_json(const PredictionInputs& inputs, const Prediction& prediction);
// A gnuplot script: speedup by batch size. `curve` is a prediction over many batch sizes.
std::string prediction_figure(const PredictionInputs& inputs, const Prediction& curve);

}  // namespace draftproof
