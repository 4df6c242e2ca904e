// Engine constants from measured step ratios: least squares with tight priors, in which a source counts as one
// observation and not as many as it has rows.
//
// Fits factors on the priors of the engines' presets, a few for all engines alike. The residual of a
// configuration is the logarithm of measured over predicted step ratio, the mean over its rows. Residuals of one source
// share an error (variance components below), by which they are whitened; without it the fit learns a laboratory.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/cost/engine_profile.hpp"
#include "sim/cost/measured_point.hpp"

namespace draftproof {

// Least squares of a function that is not linear: Levenberg and Marquardt's damping of Gauss and Newton's step.

struct LeastSquares {
  std::vector<double> x;
  double sum_of_squares = 0.0;
  std::vector<double> covariance;  // row by row: (J^T J)^-1 at x, right if residuals have unit variance
  int iterations = 0;
  bool converged = false;  // the last step changed the sum by less than one part in 10^10
};

// Minimises |residuals(x)|^2 from `start`. The number of residuals must not change; the Jacobian is by central
// differences of `step` in each x.
LeastSquares minimise(const std::function<std::vector<double>(const std::vector<double>& x)>& residuals,
                      const std::vector<double>& start, double step = 1e-4, int iterations_max = 100);

// A factor on one constant of some engines.
struct FitParameter {
  const char* name;
  EngineConstant constant;
  double prior_spread;  // of its logarithm
  bool (*applies)(const EngineProfile& engine);
};
const std::vector<FitParameter>& fit_parameters();

// Logarithms of the factors, one for each of fit_parameters().
struct FitState {
  std::vector<double> offset;
  std::vector<double> spread;
};
FitState fit_prior();

struct EngineFit {
  FitState state;
  std::vector<double> covariance;  // of the offsets, row by row
  std::vector<std::string> sources;
  std::size_t configurations = 0;
  std::size_t rows = 0;
  int iterations = 0;
  bool converged = false;

  // How much the data tell of parameter i beside its prior: 0 nothing, 1 all.
  double determined(std::size_t i, const FitState& prior) const;
};

// Standard deviations of a logarithm: what a source's step ratios have in common, what a configuration adds, and the
// noise of one row. From the residuals of published speedups (docs/cost_model.md); a mixture of experts and a row with
// assumptions have twice the first two.
struct VarianceComponents {
  double source = 0.08;
  double configuration = 0.09;
  double noise = 0.025;
};

EngineFit fit_engines(const std::vector<const MeasuredPoint*>& points, const FitState& prior,
                      const VarianceComponents& variance = {});

// The presets with these factors on their priors; spreads from `covariance`, or from the spreads of the state where
// it is empty.
std::vector<EngineProfile> engines_with(const FitState& state, const std::vector<double>& covariance = {});

// Predicts step ratios with some engines' constants.
class StepRatioModel {
 public:
  explicit StepRatioModel(const std::vector<EngineProfile>& engines) : engines_(engines) {}
  // The logarithm of the step ratio of a point. Where the number of GPUs is not stated it is the mean over those that
  // are possible, weighted by how well each explains the measured plain step, if that is stated.
  double log_ratio(const MeasuredPoint& point) const;

 private:
  std::vector<EngineProfile> engines_;
};

// Bands are of classes: a dense model on one GPU with nothing assumed, in an engine that captures graphs or an eager
// one; a dense one otherwise; a mixture of experts; a closed loop of requests whose prompts are not stated.
inline constexpr std::size_t kScatterClasses = 5;
inline constexpr std::size_t kClosedLoopClass = 4;
constexpr std::size_t scatter_class(bool mixture, bool several_gpus_or_assumed, bool eager) {
  return mixture ? 3 : several_gpus_or_assumed ? 2 : eager ? 1 : 0;
}

// Record of the shipped constants' fit: a table [fit] in sim/presets/engines.
struct FitRecord {
  FitState state;
  std::vector<std::string> sources;  // that it has seen
  // The offsets of a fit without one of these sources, with which that one is predicted honestly.
  std::map<std::string, std::vector<double>> without;
  // For a class of configurations: the standard deviation of the logarithm of a step ratio in a new laboratory,
  // and its degrees of freedom.
  struct Scatter {
    double total = 0.0;
    double source = 0.0;
    double configuration = 0.0;
    double degrees = 0.0;
  };
  // Before this data, for every class alike: eight laboratories that no constant had seen were off by 14 to 44 %.
  static constexpr Scatter kNewLaboratory{0.2, 0.17, 0.1, 2.0};
  std::array<Scatter, kScatterClasses> scatter{kNewLaboratory, kNewLaboratory, kNewLaboratory, kNewLaboratory,
                                               kNewLaboratory};
  double noise = 0.025;
};
const FitRecord& shipped_fit();
std::string toml_of(const FitRecord& record);

}  // namespace draftproof
