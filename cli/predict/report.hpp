// A prediction as a table and as a figure.
#pragma once

#include <ostream>
#include <string>

#include "sim/predict/prediction_request.hpp"

namespace draftproof {

void print_prediction(std::ostream& out, const PredictionReport& report);
// A gnuplot script: speedup by batch size. `curve` is a prediction over many batch sizes.
std::string prediction_figure(const PredictionReport& report, const Prediction& curve);

}  // namespace draftproof
