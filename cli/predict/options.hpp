// Options of `draftproof predict`.
#pragma once

#include <string>

#include "cli/shared/options.hpp"
#include "sim/predict/prediction_request.hpp"

namespace draftproof {

struct PredictArguments {
  PredictionRequest request;
  bool no_trees = false;
  std::string out;
  bool json = false;
};

void add_predict_options(Options& options, PredictArguments& arguments);

}  // namespace draftproof
