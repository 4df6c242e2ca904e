// Question of `draftproof predict`, in the words of its options, and its answer.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict/prediction.hpp"
#include "sim/predict/seen_log.hpp"
#include "sim/predict/speedup_points.hpp"

namespace draftproof {

inline constexpr const char* kDrafterExpected = "a drafter's name: EAGLE-3, MTP, n-gram, ... (draftproof presets)";

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
  std::optional<int> draft_tp;  // GPUs of the drafter; nothing: the target's, or one of draft_gpu
  std::string draft_gpu;        // devices of its own; empty: the target's
  std::string ahead;            // drafting_ahead.hpp; empty: it drafts before the target verifies
  std::optional<int> tp;        // nothing: as many as the weights and the cache of the least load need
  bool tp_is_of_log = false;    // taken from it
  int dp = 1, pp = 1;           // roofline.hpp
  bool expert_parallel = false;
  std::string metrics;  // file, or empty
  std::string metrics_name;
  std::optional<int> metrics_drafts;
  std::string metrics_rates = "as said";
  std::string acceptance;  // an acceptance model, "typical" (of such drafters), or empty: typical unless there is a log
  std::vector<int> batches{1, 8, 32};
  int context = 1024;
  int prompt = 0, output = 0;  // tokens of a closed loop's requests; they give the context. 0: decoding alone
  int drafts_max = 8;
  std::vector<int> trees{8, 16, 32, 60};
  bool guidance = false;
  std::vector<std::string> calibrate_with;
  bool calibrate_anyway = false;  // with a step that checked_step() refuses
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

// Inputs of a prediction. Files are read once, and predictions of other loads share them.
struct PredictionInputs {
  PredictionRequest request;    // with what its log says
  std::optional<SeenLog> seen;  // the log
  RooflineSetup preset;
  AcceptanceEstimate acceptance;
  PredictOptions options;
  bool prefills_of_log = false;  // options.lengths are from the log's prompt throughput
  std::vector<CheckedStep> steps;
  MachineCalibration machine;  // by those that are not refused
  std::optional<SpeedupPoints> points;
  std::vector<std::string> notes;
};

struct PredictionReport {
  std::optional<SeenLog> seen;
  RooflineSetup setup;     // as calibrated
  std::string acceptance;  // in words
  double acceptance_factor = 1.0;
  std::vector<std::string> notes;
  PredictOptions options;
  bool prefills_of_log = false;
  std::vector<CheckedStep> steps;
  std::vector<double> over_calibrated;  // of each step that is not refused: measured over predicted
  Prediction prediction;
  std::vector<ComparedPrediction> compared;
  std::optional<SpeedupPoints> points;
};

// Errors (usage, input) at the option, file or line.
PredictionInputs inputs_of(const PredictionRequest& request);
// `check` is called between parts that take some milliseconds, and may throw to end the work.
PredictionReport answer(
    const PredictionInputs& inputs, const std::function<void()>& check = [] {});
PredictionReport answer(
    const PredictionRequest& request, const std::function<void()>& check = [] {});
// The same at other loads.
Prediction prediction_at(const PredictionInputs& inputs, const std::vector<std::int64_t>& batches);

// A prediction as the JSON document of `draftproof predict` (docs/json.md), without its envelope and files.

nlohmann::ordered_json prediction_json(const PredictionReport& report);

// "Llama-3.1-8B on 2 x H100 SXM 80GB, vLLM, drafter EAGLE-3".
std::string head_of(const PredictionReport& report);

}  // namespace draftproof
