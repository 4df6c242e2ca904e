// The panel "Speedup versus batch": what `draftproof predict` says over batch sizes, as curves.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict/prediction_request.hpp"
#include "studies/figures/table.hpp"
#include "studies/job.hpp"
#include "studies/lesson.hpp"

namespace draftproof {

// A 70B target with an 8B draft model on 8 H100, beside a curve that is often quoted.
PredictionRequest quoted_70b_request();

struct SpeedupByBatchSettings {
  PredictionRequest request = quoted_70b_request();  // its batch sizes are those of batch_max
  int batch_max = 1024;
  // Which drafts have curves beside the best.
  std::vector<int> shown_drafts{1, 3, 5};  // lengths of chains
  bool show_trees = true;

  bool operator==(const SpeedupByBatchSettings&) const = default;
};

struct SpeedupCurve {
  enum class Kind { best, chain, tree, compared };
  Kind kind = Kind::best;
  std::string name;  // "K = 5", "tree of 16", "EAGLE-3", "with guidance"
  std::vector<double> batch, speedup, low, high, step_ratio, tokens_per_second;
  std::vector<std::string> draft;  // "K = 5", "tree of 16"
  // Verification pass: operations a byte, and its time over the time that they take at the GPU's peak rates.
  std::vector<double> intensity, over_floor;
  std::vector<double> share_of_peak;       // of the GPU's operations a second: roof at the intensity / over_floor
  std::optional<std::int64_t> break_even;  // the batch from which on it does not pay
  std::int64_t memory_bound_up_to = 0;     // the largest batch whose verification the memory bounds; of chains, trees
};

struct SpeedupByBatchSnapshot {
  SpeedupByBatchSettings settings;
  PredictionReport report;
  std::vector<SpeedupCurve> curves;  // the best first, then chains, trees, compared
  SpeedupCurve plain;                // intensity and over_floor of a plain pass; speedup 1
  std::string head;                  // what is predicted, in one line
};

using SpeedupPreset = Lesson<SpeedupByBatchSettings>;
const std::vector<SpeedupPreset>& speedup_presets();

// From 1 to `most`, eight to a factor of two from 8 on.
std::vector<int> curve_batches(int most);

using PublishSpeedups = std::function<void(SpeedupByBatchSnapshot)>;
void compute(const SpeedupByBatchSettings& settings, Job& job, const PublishSpeedups& publish);
nlohmann::ordered_json to_json(const SpeedupByBatchSnapshot& snapshot);
Table to_table(const SpeedupByBatchSnapshot& snapshot);
std::string to_figure(const SpeedupByBatchSnapshot& snapshot);
std::vector<std::string> command_arguments(const SpeedupByBatchSettings& settings);

// The settings of a document of `draftproof predict`, from its command. Error (input) at `path`: it has none.
SpeedupByBatchSettings settings_of_prediction(const nlohmann::ordered_json& document, const std::string& path);
// The settings with the model and GPU of an experiment of speedups by batch size, and its claims laid over.
SpeedupByBatchSettings settings_of_experiment(const std::string& path);

}  // namespace draftproof
