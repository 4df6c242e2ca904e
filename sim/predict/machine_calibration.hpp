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

namespace draftproof {

struct MeasuredStep {
  double ms = 0.0;
  BatchLoad batch;
  DraftSize form;            // {0, 0}: a plain step
  double draft_share = 1.0;  // of the requests, that had a draft
};

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

// Measured step times of a user's machine, as people have them: a number, or a server's log.

// MS            a plain decoding step of `batch.batch` requests
// MS@B, MS@B:K  of B requests; with K drafts each, drafting and verification included
// FILE          vLLM's log: the step time is running requests x tokens of a step / generation throughput, at the
//               number of running requests that most windows have; windows that compute prompts are left out. With
//               metrics of speculation in the log its steps drafted, as they say, else they are plain
// BEFORE..AFTER two dumps of vLLM's counters: the mean gap between outputs of a request, which is the step that it
//               waited for, at the mean number of running requests
// Errors (usage) at `where`; (input) those of the log.
MeasuredStep read_measured_step(const std::string& text, const BatchLoad& batch, const std::string& where);
MeasuredStep measured_step_of_log(std::string_view log, const std::string& name, const BatchLoad& batch);

}  // namespace draftproof
