#include "sim/predict/machine_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace draftproof {
namespace {

// Machines of one kind differ by more than a constant is uncertain over all of them.
constexpr double kMachineSpread = 0.2;
constexpr double kNoise = 0.02;  // of a measured time
constexpr double kStepMsLeast = 1e-3;
constexpr double kStepMsMost = 1e6;
constexpr double kStep = 1e-3;  // of numerical derivatives, in the logarithm
constexpr int kIterations = 12;

using Vector = std::vector<double>;

RooflineSetup with_offsets(RooflineSetup setup, const Vector& offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i) setup.engine.constants[i].value *= std::exp(offsets[i]);
  return setup;
}

// d f / d offset_i at `offsets`.
Vector gradient(const RooflineSetup& setup, const Vector& offsets,
                const std::function<double(const StepCost&)>& log_of) {
  Vector result;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    Vector up = offsets;
    Vector down = offsets;
    up[i] += kStep;
    down[i] -= kStep;
    result.push_back((log_of(Roofline(with_offsets(setup, up))) - log_of(Roofline(with_offsets(setup, down)))) /
                     (2.0 * kStep));
  }
  return result;
}

Vector product(const std::vector<Vector>& matrix, const Vector& vector) {
  Vector result(vector.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::size_t j = 0; j < result.size(); ++j) result[i] += matrix[i][j] * vector[j];
  return result;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

PassLoad verify_pass(const BatchLoad& batch, const DraftSize& form, double draft_share) {
  if (draft_share >= 1.0) return verify_pass(batch, form);
  PassLoad pass = plain_pass(batch);
  const auto drafted = static_cast<std::int64_t>(
      std::llround(draft_share * static_cast<double>(form.nodes) * static_cast<double>(pass.streams)));
  pass.rows += drafted;
  pass.logit_rows += drafted;
  pass.attended += drafted * batch.context;
  return pass;
}

double step_ns(const StepCost& model, const BatchLoad& batch, const DraftSize& form, DraftingKind kind,
               double draft_share) {
  if (form.nodes == 0 || draft_share <= 0.0) return plain_step_ns(model, batch);
  if (draft_share >= 1.0) return speculative_step_ns(model, batch, form, kind);
  // Rows of those that draft; drafting and its overhead where anyone does.
  const DraftLoad draft = drafting(batch, form, kind);
  const PassLoad pass = verify_pass(batch, form, draft_share);
  const double any = 1.0 - std::pow(1.0 - draft_share, static_cast<double>(batch.batch));
  return model.target_ns(pass) + any * (model.draft_ns(draft) + model.overhead_ns(batch.batch, draft)) +
         (1.0 - any) * model.overhead_ns(batch.batch, {});
}

MachineCalibration::MachineCalibration(const RooflineSetup& preset, const std::vector<MeasuredStep>& measured)
    : setup_(preset) {
  if (preset.drafter) kind_ = preset.drafter->kind;
  const std::size_t n = preset.engine.constants.size();
  covariance_.assign(n, Vector(n));
  for (std::size_t i = 0; i < n; ++i) {
    const double spread = preset.engine.constants[i].spread;
    prior_variance_.push_back(spread * spread + kMachineSpread * kMachineSpread);
    covariance_[i][i] = prior_variance_[i];
  }
  const auto log_time_of = [&](const MeasuredStep& step) {
    return [&step, this](const StepCost& model) {
      return std::log(step_ns(model, step.batch, step.form, kind_, step.draft_share) * 1e-6);
    };
  };
  for (const MeasuredStep& step : measured) {
    if (!(step.ms >= kStepMsLeast && step.ms <= kStepMsMost))
      throw usage_error("--calibrate-with",
                        "a step of " + nlohmann::json(step.ms).dump() + " ms; expected a time from 0.001 to 1e6 ms");
    before_.push_back(step.ms / std::exp(log_time_of(step)(Roofline(preset))));
  }
  Vector offsets(n);
  const std::vector<Vector> prior = covariance_;
  for (int iteration = 0; iteration < (measured.empty() ? 0 : kIterations); ++iteration) {
    const Vector at = offsets;  // where the model is linearised
    Vector mean(n);
    covariance_ = prior;
    for (const MeasuredStep& step : measured) {
      const auto log_of = log_time_of(step);
      const Vector slope = gradient(preset, at, log_of);
      const double predicted = log_of(Roofline(with_offsets(preset, at))) + dot(slope, mean) - dot(slope, at);
      const Vector gain = product(covariance_, slope);
      const double variance = dot(slope, gain) + kNoise * kNoise;
      for (std::size_t i = 0; i < n; ++i) mean[i] += gain[i] * (std::log(step.ms) - predicted) / variance;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) covariance_[i][j] -= gain[i] * gain[j] / variance;
    }
    offsets = mean;
  }
  setup_ = with_offsets(preset, offsets);
  for (const MeasuredStep& step : measured) after_.push_back(step.ms / std::exp(log_time_of(step)(Roofline(setup_))));
}

double MachineCalibration::variance_left(const BatchLoad& batch, const DraftSize& form, double draft_share) const {
  if (before_.empty()) return 1.0;
  const Vector slope = gradient(setup_, Vector(prior_variance_.size()), [&](const StepCost& model) {
    return std::log(step_ns(model, batch, form, kind_, draft_share) / plain_step_ns(model, batch));
  });
  double prior = 0.0;
  for (std::size_t i = 0; i < slope.size(); ++i) prior += slope[i] * slope[i] * prior_variance_[i];
  if (prior <= 0.0) return 1.0;
  return std::clamp(dot(slope, product(covariance_, slope)) / prior, 0.0, 1.0);
}

}  // namespace draftproof
