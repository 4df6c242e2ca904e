// Engine constants of a user's machine from a few measured step times: the constants that make what was measured most
// likely, each starting from its preset with a spread.
//
//   log t_measured = log t(constants) + noise,   log constants ~ normal(log preset, spread)
//
// Solved by Gauss-Newton steps with one scalar update a measurement (an iterated Kalman filter). What the measurements
// say of step ratios is the part of their variance that goes away.
#pragma once

#include <string>
#include <vector>

#include "sim/cost/roofline.hpp"
#include "sim/cost/step_ratio.hpp"
#include "sim/import/acceptance_data.hpp"

namespace draftproof {

struct MeasuredStep {
  double ms = 0.0;
  BatchLoad batch;
  DraftSize form;            // {0, 0}: a plain step
  double draft_share = 1.0;  // of the requests, that had a draft
  // Prompts that were computed between these steps, whose time is in `ms`; 0: the steps decoded alone.
  double prompt_tokens_per_second = 0.0;
};

// "K = 3", "a tree of 16 nodes, 4 deep".
std::string name_of(const DraftSize& form);

class MachineCalibration {
 public:
  // Errors (usage): a time that is not positive.
  MachineCalibration(const RooflineSetup& preset, const std::vector<MeasuredStep>& measured);

  const RooflineSetup& setup() const { return setup_; }
  // Share left of the variance that the constants give the logarithm of a step ratio: 1 without measurements.
  double variance_left(const BatchLoad& batch, const DraftSize& form, double draft_share) const;
  // Measured over predicted times, with the preset and after calibration.
  std::vector<double> residuals_before() const { return before_; }
  std::vector<double> residuals_after() const { return after_; }

 private:
  RooflineSetup setup_;
  DraftingKind kind_ = DraftingKind::head;
  std::vector<double> prior_variance_;           // of the logarithm of each constant
  std::vector<std::vector<double>> covariance_;  // after the measurements
  std::vector<double> before_, after_;
};

// Does a step tell how fast this machine is?
struct CheckedStep {
  MeasuredStep step;           // without the time of prompts
  double prefill_share = 0.0;  // of the measured time, by the model's own prefill cost
  double over_preset = 1.0;    // step.ms over what the preset predicts
  std::string refusal;         // why it calibrates nothing, with the likely reasons; empty: it does

  // "12.8 ms at batch 8, plain: 1.05 times what this GPU should need".
  std::string text() const;
};
// In words: 8.11 ms, 1356 ms.
std::string milliseconds(double ms);
// Refused is a step of windows that computed prompts for most of their time, and one of more than 3 times the preset's
// time, or less than a third.
CheckedStep checked_step(const RooflineSetup& preset, const MeasuredStep& measured);

// Measured step times of a user's machine, as people have them: a number, or a server's log.

// MS            a plain decoding step of `batch.batch` requests
// MS@B, MS@B:K  of B requests; with K drafts each, drafting and verification included
// Errors (usage) at `where`.
MeasuredStep read_measured_step(const std::string& text, const BatchLoad& batch, const std::string& where);
// Is it one of these, and no file?
bool is_step_time(const std::string& text);
// Has the window as good as no prompts in it?
bool decodes_alone(const ThroughputWindow& window);
// The step of a server's log, or of two dumps of vLLM's counters (the mean gap between outputs of a request): running
// requests x tokens of a step / generation throughput, at the number of running requests that most windows have, in
// windows that decode alone where there are any. Errors (input) at `name`: no window under load, or groups of GPUs of
// which some have no window.
MeasuredStep step_of_windows(const AcceptanceData& data, const std::string& name, const BatchLoad& batch);

}  // namespace draftproof
