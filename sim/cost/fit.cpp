#include "sim/cost/fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>

namespace draftproof {
namespace {

using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

Eigen::VectorXd evaluate(const Residuals& residuals, const Eigen::VectorXd& x) {
  const std::vector<double> r = residuals(std::vector<double>(x.data(), x.data() + x.size()));
  return Eigen::Map<const Eigen::VectorXd>(r.data(), static_cast<Eigen::Index>(r.size()));
}

Eigen::MatrixXd jacobian_at(const Residuals& residuals, Eigen::VectorXd x, Eigen::Index rows, double step) {
  Eigen::MatrixXd jacobian(rows, x.size());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const Eigen::VectorXd above = evaluate(residuals, x);
    x[i] = at - step;
    jacobian.col(i) = (above - evaluate(residuals, x)) / (2.0 * step);
    x[i] = at;
  }
  return jacobian;
}

bool any(const EngineProfile&) {
  return true;
}
bool eager(const EngineProfile& engine) {
  return engine.eager;
}
bool graph(const EngineProfile& engine) {
  return !engine.eager;
}
bool eager_drafts(const EngineProfile& engine) {
  return engine.eager_drafts;
}
bool graph_drafts(const EngineProfile& engine) {
  return !engine.eager_drafts;
}
bool eager_with_graph_drafts(const EngineProfile& engine) {
  return engine.eager && !engine.eager_drafts;
}
bool sglang(const EngineProfile& engine) {
  return engine.name == "SGLang";
}

// How well a number of GPUs must explain a measured plain step, in the logarithm: what the model errs by.
constexpr double kBaselineSpread = 0.3;

// The rows of one configuration.
struct Configuration {
  const MeasuredPoint* point = nullptr;
  double log_ratio = 0.0;  // mean
  std::size_t rows = 0;
};

std::vector<Configuration> configurations_of(const std::vector<const MeasuredPoint*>& points) {
  std::map<std::string, std::size_t> index;
  std::vector<Configuration> all;
  for (const MeasuredPoint* point : points) {
    const auto [found, is_new] = index.try_emplace(point->configuration, all.size());
    if (is_new) all.push_back({point});
    Configuration& configuration = all[found->second];
    configuration.log_ratio += std::log(point->step_ratio);
    ++configuration.rows;
  }
  for (Configuration& configuration : all) configuration.log_ratio /= static_cast<double>(configuration.rows);
  return all;
}

// The residuals of one source, and the inverse of the Cholesky factor of their covariance.
struct Whitening {
  std::vector<std::size_t> indices;
  Eigen::LLT<Eigen::MatrixXd> covariance;
};

std::vector<Whitening> whitenings_of(const std::vector<Configuration>& all, const VarianceComponents& variance) {
  std::map<std::string, std::vector<std::size_t>> of_source;
  for (std::size_t i = 0; i < all.size(); ++i) of_source[all[i].point->source].push_back(i);
  std::vector<Whitening> whitenings;
  for (const auto& [source, indices] : of_source) {
    const auto size = static_cast<Eigen::Index>(indices.size());
    const auto scale = [&, &indices = indices](Eigen::Index i) {
      const MeasuredPoint& point = *all[indices[static_cast<std::size_t>(i)]].point;
      return point.moe || !point.assumptions.empty() ? 2.0 : 1.0;
    };
    Eigen::MatrixXd covariance(size, size);
    for (Eigen::Index i = 0; i < size; ++i)
      for (Eigen::Index j = 0; j < size; ++j) {
        covariance(i, j) = scale(i) * scale(j) * variance.source * variance.source;
        if (i == j)
          covariance(i, j) +=
              std::pow(scale(i) * variance.configuration, 2) +
              std::pow(variance.noise, 2) / static_cast<double>(all[indices[static_cast<std::size_t>(i)]].rows);
      }
    whitenings.push_back({indices, Eigen::LLT<Eigen::MatrixXd>(covariance)});
  }
  return whitenings;
}

}  // namespace

LeastSquares minimise(const Residuals& residuals, const std::vector<double>& start, double step, int iterations_max) {
  Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(start.data(), static_cast<Eigen::Index>(start.size()));
  Eigen::VectorXd r = evaluate(residuals, x);
  Eigen::MatrixXd jacobian = jacobian_at(residuals, x, r.size(), step);
  LeastSquares result;
  result.sum_of_squares = r.squaredNorm();
  double damping = 1e-3;
  while (!result.converged && result.iterations < iterations_max) {
    ++result.iterations;
    const Eigen::MatrixXd normal = jacobian.transpose() * jacobian;
    Eigen::MatrixXd damped = normal;
    // Marquardt's scale, with a floor for an x that no residual depends on.
    damped.diagonal() += damping * normal.diagonal().cwiseMax(1e-12);
    const Eigen::VectorXd next = x - damped.ldlt().solve(jacobian.transpose() * r);
    const Eigen::VectorXd next_r = evaluate(residuals, next);
    const double sum = next_r.squaredNorm();
    if (std::isfinite(sum) && sum <= result.sum_of_squares) {
      result.converged = result.sum_of_squares - sum <= 1e-10 * result.sum_of_squares;
      x = next;
      r = next_r;
      result.sum_of_squares = sum;
      jacobian = jacobian_at(residuals, x, r.size(), step);
      damping = std::max(damping / 10.0, 1e-12);
    } else {
      damping *= 10.0;
      result.converged = damping > 1e12;  // no step helps any more
    }
  }
  const Eigen::MatrixXd normal = jacobian.transpose() * jacobian;
  const Eigen::MatrixXd covariance = normal.completeOrthogonalDecomposition().pseudoInverse();
  result.x.assign(x.data(), x.data() + x.size());
  for (Eigen::Index i = 0; i < covariance.rows(); ++i)
    for (Eigen::Index j = 0; j < covariance.cols(); ++j) result.covariance.push_back(covariance(i, j));
  return result;
}

const std::vector<FitParameter>& fit_parameters() {
  using C = EngineConstant;
  // Few and tight: a loose prior learns a laboratory. Spreads are what such constants differ by between papers that
  // state them.
  static const std::vector<FitParameter> parameters{
      {"bandwidth_efficiency", C::bandwidth_efficiency, 0.07, any},
      {"flop_efficiency", C::flop_efficiency, 0.12, any},
      {"expert_bandwidth_efficiency", C::expert_bandwidth_efficiency, 0.2, any},
      {"expert_exponent", C::expert_exponent, 0.1, any},
      {"layer_launch_graph", C::layer_launch_ms, 0.25, graph},
      {"layer_launch_eager", C::layer_launch_ms, 0.15, eager},
      {"draft_layer_launch_graph", C::draft_layer_launch_ms, 0.25, graph_drafts},
      {"draft_layer_launch_eager", C::draft_layer_launch_ms, 0.15, eager_drafts},
      {"step_floor", C::step_floor_ms, 0.25, any},
      {"step_floor_sglang", C::step_floor_ms, 0.2, sglang},
      {"pass_floor_graph", C::pass_floor_ms, 0.4, graph_drafts},
      {"pass_floor_eager", C::pass_floor_ms, 0.3, eager_drafts},
      {"tree_pass", C::tree_pass_ms, 0.4, any},
      {"speculation_graph", C::speculation_ms, 0.4, graph},
      {"speculation_eager", C::speculation_ms, 0.3, eager_drafts},
      {"speculation_eager_with_graph_drafts", C::speculation_ms, 0.5, eager_with_graph_drafts},
      {"speculation_sglang", C::speculation_ms, 0.2, sglang},
      {"collective", C::collective_ms, 0.5, any},
  };
  return parameters;
}

FitState fit_prior() {
  FitState state;
  for (const FitParameter& parameter : fit_parameters()) {
    state.offset.push_back(0.0);
    state.spread.push_back(parameter.prior_spread);
  }
  return state;
}

double EngineFit::determined(std::size_t i, const FitState& prior) const {
  const double share = state.spread[i] / prior.spread[i];
  return std::clamp(1.0 - share * share, 0.0, 1.0);
}

std::vector<EngineProfile> engines_with(const FitState& state, const std::vector<double>& covariance) {
  const std::vector<FitParameter>& parameters = fit_parameters();
  const std::size_t n = parameters.size();
  std::vector<EngineProfile> engines = engine_presets();
  for (EngineProfile& engine : engines) {
    std::array<double, kEngineConstants> offset{};
    std::array<double, kEngineConstants> variance{};
    for (std::size_t i = 0; i < n; ++i) {
      if (!parameters[i].applies(engine)) continue;
      const auto constant = static_cast<std::size_t>(parameters[i].constant);
      offset[constant] += state.offset[i];
      for (std::size_t j = 0; j < n; ++j) {
        if (parameters[j].constant != parameters[i].constant || !parameters[j].applies(engine)) continue;
        if (!covariance.empty()) variance[constant] += covariance[i * n + j];
        if (covariance.empty() && i == j) variance[constant] += state.spread[i] * state.spread[i];
      }
    }
    for (std::size_t c = 0; c < kEngineConstants; ++c) {
      engine.constants[c].value = engine.constants[c].prior * std::exp(offset[c]);
      engine.constants[c].spread = std::sqrt(variance[c]);
    }
  }
  return engines;
}

double StepRatioModel::log_ratio(const MeasuredPoint& point) const {
  double sum = 0.0;
  double weights = 0.0;
  for (const RooflineSetup& setup : point.setups) {
    Roofline roofline(setup);
    for (const EngineProfile& engine : engines_)
      if (engine.name == setup.engine.name) roofline.set_constants(engine.constants);
    const double plain_ms = plain_step_ns(roofline, point.batch) / 1e6;
    const double ratio = step_ratio(roofline, point.batch, point.form, point.kind, point.draft_share);
    const double prefill = prefill_share(roofline, point.batch, point.lengths);
    double weight = 1.0;
    if (point.setups.size() > 1 && point.baseline_ms > 0.0)
      weight = std::exp(-0.5 * std::pow(std::log(plain_ms / point.baseline_ms) / kBaselineSpread, 2)) + 1e-9;
    sum += weight * std::log(point.acceptance_length / with_prefill(point.acceptance_length / ratio, prefill));
    weights += weight;
  }
  return sum / weights;
}

EngineFit fit_engines(const std::vector<const MeasuredPoint*>& points, const FitState& prior,
                      const VarianceComponents& variance) {
  const std::vector<Configuration> all = configurations_of(points);
  const std::vector<Whitening> whitenings = whitenings_of(all, variance);
  const std::size_t n = prior.offset.size();

  const auto residuals = [&](const std::vector<double>& x) {
    const StepRatioModel model(engines_with({x, prior.spread}));
    std::vector<double> r;
    for (const Whitening& source : whitenings) {
      Eigen::VectorXd errors(static_cast<Eigen::Index>(source.indices.size()));
      for (std::size_t i = 0; i < source.indices.size(); ++i) {
        const Configuration& configuration = all[source.indices[i]];
        errors[static_cast<Eigen::Index>(i)] = configuration.log_ratio - model.log_ratio(*configuration.point);
      }
      source.covariance.matrixL().solveInPlace(errors);
      r.insert(r.end(), errors.data(), errors.data() + errors.size());
    }
    for (std::size_t i = 0; i < n; ++i) r.push_back((x[i] - prior.offset[i]) / prior.spread[i]);
    return r;
  };

  const LeastSquares solution = minimise(residuals, prior.offset, 1e-3, 50);
  EngineFit fit;
  fit.state.offset = solution.x;
  for (std::size_t i = 0; i < n; ++i) fit.state.spread.push_back(std::sqrt(solution.covariance[i * n + i]));
  fit.covariance = solution.covariance;
  fit.configurations = all.size();
  fit.rows = points.size();
  for (const Whitening& source : whitenings) fit.sources.push_back(all[source.indices.front()].point->source);
  fit.iterations = solution.iterations;
  fit.converged = solution.converged;
  return fit;
}

}  // namespace draftproof
