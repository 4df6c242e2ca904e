// Gains of speculation: speedup, tokens per second and step ratio of every number of drafts and tree, the best of them
// by batch size, and at which batch sizes speculation should be off.
// Best is what takes the least GPU time for a token in the mean over the band (SpeedupBand).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/fit.hpp"
#include "sim/predict/acceptance_estimate.hpp"
#include "sim/predict/machine_calibration.hpp"

namespace draftproof {

// How far step ratios of this setup are off, by the shipped constants' record (sim/cost/fit.hpp), in the logarithm.
struct StepRatioScatter {
  FitRecord::Scatter scatter;
  double noise = 0.0;
};
StepRatioScatter scatter_of(const RooflineSetup& setup, const FitRecord& record);

struct PredictOptions {
  std::vector<std::int64_t> batches{1, 8, 32};
  std::int64_t context = 1024;
  LoopLengths lengths;  // given: speedups are ratios of a closed loop's throughputs, prefills included
  std::optional<std::int32_t> running_drafts;  // K of the server that asks, where it drafts chains
  bool guidance = false;
  DraftingAhead ahead;
  std::int32_t drafts_max = 8;
  std::vector<std::int32_t> tree_nodes{8, 16, 32, 60};
  // Does the engine verify trees? If not, they have rows, and the best draft is a chain.
  bool engine_takes_trees = true;
  std::int64_t batch_max = 1024;  // as far as a break-even is looked for, if the memory holds so many requests
};

// A pass of the target against what it must read and compute at the GPU's peak rates.
struct PassTime {
  double ms = 0.0;
  PassFloor floor;

  double over_floor() const { return ms * 1e6 / floor.ns(); }
};

struct PredictionRow {
  std::int64_t batch = 1;
  DraftSize form;
  double tokens_per_step = 1.0;  // of a request, steps without a draft included
  double step_ratio = 1.0;
  double speedup = 1.0;
  double low = 1.0, high = 1.0;    // of the speedup: the 80 % band
  bool extrapolated = false;       // its acceptance stands behind the positions that were measured
  double tokens_per_second = 0.0;  // of the whole batch
  PassTime verify;                 // the target's pass

  SpeedupBand band() const { return {speedup, 0.5 * std::log(high / low)}; }
};

struct BatchPrediction {
  std::int64_t batch = 1;
  bool fits = true;       // the memory holds so many requests of this context
  double plain_ms = 0.0;  // a step without speculation
  double plain_tokens_per_second = 0.0;
  double prefill_share = 0.0;  // of the time of plain decoding in a closed loop
  PassTime plain_pass;
  std::vector<PredictionRow> rows;  // chains of 1, 2, ..., then trees
  std::size_t best = 0;             // of rows that the engine takes
  std::size_t best_chain = 0;
  std::optional<std::size_t> best_tree;
  std::vector<std::string> notes;  // what makes a step here dearer than a little below: graphs, experts

  // Is a draft better than plain decoding?
  bool pays() const { return rows[best].band().pays(); }
};

// Batch sizes from `from` up to `to`, inclusive.
struct LoadInterval {
  std::int64_t from = 1;
  std::int64_t to = 1;
};

// Limits that the batch sets to one draft; of trees, to the best one of a size.
struct DraftLimits {
  DraftSize form;                          // as best at the first batch size
  std::int64_t memory_bound_up_to = 0;     // the largest batch whose verification the memory bounds; 0: none
  std::optional<std::int64_t> break_even;  // the least batch from which on it does not pay
};

struct Prediction {
  std::vector<BatchPrediction> batches;
  std::vector<LoadInterval> plain_best;  // where plain decoding is; apart, ascending
  // The least batch size at which plain decoding is best, or a loss with the best draft inside its band. Nothing: none.
  std::optional<std::int64_t> loss_possible_from;
  // The least batch size from which on nothing pays, up to the largest that was looked at; and where the band's lower
  // and upper end put it. Nothing: it pays there.
  std::optional<std::int64_t> break_even, break_even_low, break_even_high;
  std::int64_t looked_up_to = 0;
  std::int64_t batch_of_memory = 0;  // requests of this context that the memory holds
  double ridge_intensity = 0.0;      // operations a byte where memory and multiplications take equally long
  std::vector<DraftLimits> drafts;   // those that have rows
  std::string advice;                // which drafts at loads that fit, and load_advice
  std::string load_advice;           // at which loads speculation is to be off, and from which on a loss is possible
};

// A change of K that gains less is not worth a restart of the server.
inline constexpr double kGainWorthAChange = 0.03;

Prediction predict(const MachineCalibration& machine, const AcceptanceEstimate& acceptance,
                   const StepRatioScatter& scatter, const PredictOptions& options);

}  // namespace draftproof
