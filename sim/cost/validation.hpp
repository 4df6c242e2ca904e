// Prediction of step ratios and speedups of sources that the constants have not seen.
//
// As shipped: the constants and bands that `predict` uses, of a source that they have seen those shipped without it.
// Refitted: without the source, then predict it. A source that the shipped constants have not seen: they are the prior,
// and the other unseen sources of the file are the data. A source that they have seen: the engines' priors and all
// other sources of the file if these are as many as the shipped constants have seen, else the shipped constants without
// that source. Bands come from the residuals of other sources, a source being one observation, with Student's factor.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/cost/fit.hpp"
#include "sim/cost/measured_point.hpp"

namespace draftproof {

struct PredictedPoint {
  const MeasuredPoint* point = nullptr;
  double log_ratio = 0.0;     // of the step ratio
  double half_width = 0.0;    // of its 80 % band, in the logarithm
  bool from_shipped = false;  // the shipped constants, or those shipped without this source, were the prior

  double step_ratio() const;
  double speedup() const;  // from the measured acceptance length
  double error() const;    // of the step ratio, predicted / measured - 1
  double speedup_error() const;
  double textbook_error() const;  // of the step ratio by the textbook formula
  bool in_band() const;
  SpeedupBand band() const { return {speedup(), half_width}; }
};

// Rows that measured less than plain decoding, and those that did not: of how many the band said that a loss is
// possible, or not, and which the rule of the least expected time turns off, or on.
struct SwitchDecisions {
  std::size_t losses = 0, losses_found = 0, losses_off = 0;
  std::size_t gains = 0, gains_kept = 0, gains_on = 0;
};

// Errors are fractions.
struct GroupFigures {
  std::size_t rows = 0;
  std::size_t sources = 0;
  double step_ratio_median = 0.0;  // of the absolute errors
  double step_ratio_p90 = 0.0;
  double bias = 0.0;  // median of the errors
  double speedup_median = 0.0;
  double speedup_p90 = 0.0;
  double textbook_median = 0.0;
  double band80_coverage = 0.0;   // share of the rows
  double band80_by_source = 0.0;  // mean over the sources of the share of their rows: a source is what is drawn
  std::size_t choices = 0;        // machines, loads and data with several drafts to choose from
  double regret = 0.0;  // mean share of the best speedup that is lost by the model's choice; 0 without choices
  double textbook_regret = 0.0;
  SwitchDecisions decisions;
};
GroupFigures figures_of(const std::vector<const PredictedPoint*>& points);

// With one configuration of the same machine known: every configuration in turn, errors of the others.
struct CalibratedFigures {
  std::size_t predictions = 0;
  double step_ratio_median = 0.0;
  double step_ratio_p90 = 0.0;
};

struct Validation {
  std::vector<PredictedPoint> points;  // in the file's order
  GroupFigures overall;
  std::vector<std::pair<std::string, GroupFigures>> groups;  // complete, ..., then sources by name
  CalibratedFigures calibrated_complete, calibrated_all;
  std::vector<const PredictedPoint*> worst;  // at most ten, the largest error first
  FitRecord record;                          // with the scatter of these residuals
};

enum class Constants { as_shipped, refitted };
Validation validate(const MeasuredData& data, const FitRecord& shipped, Constants constants);

std::size_t scatter_class(const MeasuredPoint& point);
// Scatter by class from residuals (logarithms, each predicted without its source), with `prior` as so many sources as
// it has degrees of freedom. A source is one observation, however many rows it has; half of one where the model's terms
// were chosen by people who had seen it.
std::array<FitRecord::Scatter, kScatterClasses> scatter_of(
    const std::vector<PredictedPoint>& residuals, const std::set<std::string>& chosen_with,
    const std::array<FitRecord::Scatter, kScatterClasses>& prior);
// Half the width of the band in the logarithm that covers `share` of the rows of unseen sources.
double band_half_width(const FitRecord::Scatter& scatter, double noise, double share);

// The step ratio after one configuration of the machine was measured: the cost beyond a plain step, step ratio - 1, is
// scaled by what was measured there.
double calibrated_log_ratio(double log_ratio, double measured_log_ratio, double predicted_log_ratio);

}  // namespace draftproof
