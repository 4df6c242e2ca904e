// Question of `draftproof predict`, in the words of its options, and its answer.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict/prediction.hpp"
#include "sim/predict/speedup_points.hpp"

namespace draftproof {

struct PredictionRequest {
  // A server's log, from which what is left at its default is taken: model, precision, tp, engine, drafter, its
  // acceptance, the load, and a measured step. Or empty.
  std::string log;
  std::string model;
  std::string gpu;
  std::string engine = "vLLM";
  std::string drafter;
  std::string precision;        // empty: the model's own
  std::string draft_precision;  // empty: 16 bits
  std::optional<int> tp;        // nothing: as many as the weights need
  int dp = 1, pp = 1;           // roofline.hpp
  bool expert_parallel = false;
  std::string metrics;  // file, or empty
  std::string metrics_name;
  std::optional<int> metrics_drafts;
  std::string metrics_rates = "as said";
  std::string acceptance;  // an acceptance model, or empty
  std::vector<int> batches{1, 8, 32};
  int context = 1024;
  int prompt = 0, output = 0;  // tokens of a closed loop's requests; they give the context. 0: decoding alone
  int drafts_max = 8;
  std::vector<int> trees{8, 16, 32, 60};
  bool guidance = false;
  std::vector<std::string> calibrate_with;
  // Factors of a what-if: on the acceptance of drafts, and on their cost.
  double acceptance_factor = 1.0;
  double draft_cost_factor = 1.0;
  // Besides: the best drafts of other drafters, with acceptances that are typical of each, and of this drafter with
  // guidance where `guidance` is off, without where it is on.
  std::vector<std::string> compared_drafters;
  bool compare_guidance = false;
  std::string measured;  // speedup_points.hpp: a file of measured or quoted speedups, or empty

  bool operator==(const PredictionRequest&) const = default;
};

// The best drafts of another drafter, or of the same with and without guidance.
struct ComparedPrediction {
  std::string drafter;
  bool guidance = false;
  std::string acceptance;
  Prediction prediction;
};

struct PredictionReport {
  RooflineSetup setup;     // as calibrated
  std::string acceptance;  // in words
  double acceptance_factor = 1.0;
  std::vector<std::string> notes;
  PredictOptions options;
  std::vector<MeasuredStep> measured_steps;
  std::vector<double> residuals_before, residuals_after;
  Prediction prediction;
  std::vector<ComparedPrediction> compared;
  std::optional<SpeedupPoints> points;
};

// `check` is called between parts that take some milliseconds, and may throw to end the work. Errors (usage, input) at
// the option, file or line.
PredictionReport answer(
    const PredictionRequest& request, const std::function<void()>& check = [] {});

// A prediction as the JSON document of `draftproof predict` (docs/json.md), without its envelope and files.

nlohmann::ordered_json prediction_json(const PredictionReport& report);

// "Llama-3.1-8B on 2 x H100 SXM 80GB, vLLM, drafter EAGLE-3".
std::string head_of(const PredictionReport& report);

}  // namespace draftproof
