#include "sim/predict/machine_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/acceptance/acceptance_model.hpp"

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

// Windows of decoding alone where there are any; of these the ones with the most frequent number of running requests.
std::vector<ThroughputWindow> steady_windows(const std::vector<ThroughputWindow>& windows, const std::string& name) {
  std::map<std::int64_t, std::vector<ThroughputWindow>> by_running;
  for (const bool decoding_alone : {true, false}) {
    for (const ThroughputWindow& w : windows)
      if (w.running >= 1.0 && w.tokens_per_second > 0.0 && (!decoding_alone || decodes_alone(w)))
        by_running[std::llround(w.running)].push_back(w);
    if (!by_running.empty()) break;
  }
  if (by_running.empty())
    throw input_error(name, "no line of throughput has running requests; expected a log of a server under load");
  return std::ranges::max_element(by_running,
                                  [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); })
      ->second;
}

void require_time(const MeasuredStep& step) {
  if (!(step.ms >= kStepMsLeast && step.ms <= kStepMsMost))
    throw usage_error("--calibrate-with",
                      "a step of " + nlohmann::json(step.ms).dump() + " ms; expected a time from 0.001 to 1e6 ms");
}

double predicted_ms(const StepCost& model, const MeasuredStep& step, DraftingKind kind) {
  return speculative_step_ns(model, step.batch, step.form, kind, step.draft_share) * 1e-6;
}

}  // namespace

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
    return [&step, this](const StepCost& model) { return std::log(predicted_ms(model, step, kind_)); };
  };
  for (const MeasuredStep& step : measured) {
    require_time(step);
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
    return std::log(speculative_step_ns(model, batch, form, kind_, draft_share) / plain_step_ns(model, batch));
  });
  double prior = 0.0;
  for (std::size_t i = 0; i < slope.size(); ++i) prior += slope[i] * slope[i] * prior_variance_[i];
  if (prior <= 0.0) return 1.0;
  return std::clamp(dot(slope, product(covariance_, slope)) / prior, 0.0, 1.0);
}

std::string milliseconds(double ms) {
  constexpr double kWhole = 1000.0;  // %.3g of more has an exponent
  return number(ms < kWhole ? "%.3g ms" : "%.0f ms", ms);
}

std::string name_of(const DraftSize& form) {
  if (!form.is_tree()) return "K = " + std::to_string(form.depth);
  return "a tree of " + counted_noun(form.nodes, "node") + ", " + std::to_string(form.depth) + " deep";
}

std::string CheckedStep::text() const {
  return milliseconds(step.ms) + " at batch " + std::to_string(step.batch.batch) + ", " +
         (step.form.nodes > 0 ? name_of(step.form) : "plain") + ": " +
         number("%.3g times what this GPU should need", over_preset);
}

CheckedStep checked_step(const RooflineSetup& preset, const MeasuredStep& measured) {
  constexpr double kPrefillShareMost = 0.5;  // beyond, the step is what an error of the prefill's cost leaves
  constexpr double kResidualMost = 3.0;
  require_time(measured);
  const Roofline cost(preset);
  CheckedStep checked{measured, 0.0, 1.0, ""};
  MeasuredStep& step = checked.step;
  step.prompt_tokens_per_second = 0.0;
  checked.prefill_share = measured.prompt_tokens_per_second * prefill_ns(cost, measured.batch.context) * 1e-9 /
                          static_cast<double>(measured.batch.context);
  const bool full_of_prefills = checked.prefill_share > kPrefillShareMost;
  if (!full_of_prefills) step.ms *= 1.0 - checked.prefill_share;
  checked.over_preset = step.ms / predicted_ms(cost, step, preset.drafter ? preset.drafter->kind : DraftingKind::head);
  if (full_of_prefills) {
    checked.refusal = "its windows are full of prefills, " + number("%.0f", measured.prompt_tokens_per_second) +
                      " prompt tokens a second that take " +
                      number("%.0f %%", 100.0 * std::min(1.0, checked.prefill_share)) +
                      " of the time; expected windows that decode, with a prompt throughput near 0";
  } else if (checked.over_preset > kResidualMost) {
    checked.refusal =
        "expected at most 3 times: are there prefills in it, is it another GPU, do others use the GPU, or is the "
        "context longer than --context";
  } else if (checked.over_preset < 1.0 / kResidualMost) {
    checked.refusal =
        "expected at least a third: is it another GPU, are there more GPUs than --tp, fewer bits than --precision, or "
        "drafts in the step";
  }
  return checked;
}

bool decodes_alone(const ThroughputWindow& window) {
  constexpr double kPrompts = 0.05;  // tokens for one generated: less than a hundredth of the time
  return window.prompt_tokens_per_second <= kPrompts * window.tokens_per_second;
}

namespace {

// One engine's step, at its own load.
MeasuredStep step_of_engine(const std::vector<ThroughputWindow>& of_engine, const AcceptanceData& data,
                            const std::string& name, const BatchLoad& batch) {
  std::vector<ThroughputWindow> windows = steady_windows(of_engine, name);
  const auto middle = windows.begin() + std::ssize(windows) / 2;
  std::ranges::nth_element(windows, middle, {}, &ThroughputWindow::tokens_per_second);
  MeasuredStep step;
  step.batch = batch;
  step.batch.batch = std::llround(middle->running);
  step.draft_share = data.draft_share.value_or(1.0);
  const auto depth = data.tree_nodes == 0 && middle->draft_tokens
                         ? static_cast<std::int32_t>(std::lround(*middle->draft_tokens))
                         : data.draft_len;
  const double tokens = middle->tokens_per_step.value_or(data.tokens_per_step());
  if (depth < 1 && tokens > 1.0)
    throw input_error(name,
                      "does not say how many tokens a draft has; expected per-position acceptance rates, or "
                      "speculative_num_steps");
  step.form = {data.tree_nodes > 0 ? data.tree_nodes : depth, depth};
  step.ms = 1e3 * middle->running * tokens / middle->tokens_per_second;
  if (!decodes_alone(*middle)) step.prompt_tokens_per_second = middle->prompt_tokens_per_second;
  return step;
}

}  // namespace

MeasuredStep step_of_windows(const AcceptanceData& data, const std::string& name, const BatchLoad& batch) {
  std::map<int, std::vector<ThroughputWindow>> by_engine;
  for (const ThroughputWindow& window : data.throughput)
    if (window.running >= 1.0 && window.tokens_per_second > 0.0) by_engine[window.engine].push_back(window);
  if (by_engine.empty()) return step_of_engine({}, data, name, batch);  // which says what is missing
  // Engines weigh what they run.
  std::vector<MeasuredStep> steps;
  for (const auto& [engine, windows] : by_engine) steps.push_back(step_of_engine(windows, data, name, batch));
  MeasuredStep all = steps.front();
  if (steps.size() == 1) return all;
  all.ms = all.prompt_tokens_per_second = 0.0;
  all.batch.batch = 0;
  for (const MeasuredStep& step : steps) {
    const auto requests = static_cast<double>(step.batch.batch);
    all.ms += requests * step.ms;
    all.prompt_tokens_per_second += requests * step.prompt_tokens_per_second;
    all.batch.batch += step.batch.batch;
  }
  all.ms /= static_cast<double>(all.batch.batch);
  all.prompt_tokens_per_second /= static_cast<double>(all.batch.batch);
  return all;
}

bool is_step_time(const std::string& text) {
  return read_number(text.substr(0, text.find('@'))).has_value();
}

MeasuredStep read_measured_step(const std::string& text, const BatchLoad& batch, const std::string& where) {
  const std::size_t at = text.find('@');
  const auto ms = read_number(text.substr(0, at));
  MeasuredStep step;
  step.batch = batch;
  if (ms) step.ms = *ms;
  if (ms && at == std::string::npos) return step;
  const std::string rest = at == std::string::npos ? "" : text.substr(at + 1);
  const std::size_t colon = rest.find(':');
  const auto size = read_integer(rest.substr(0, colon), 1, 1 << 20);
  const auto drafts = colon == std::string::npos ? std::optional<std::int64_t>(0)
                                                 : read_integer(rest.substr(colon + 1), 0, kAcceptanceDepthMax);
  if (!ms || !size || !drafts)
    throw usage_error(where, "is " + in_quotes(text) + "; expected MS, MS@BATCH, MS@BATCH:DRAFTS, or a log");
  step.batch.batch = *size;
  step.form = {static_cast<std::int32_t>(*drafts), static_cast<std::int32_t>(*drafts)};
  return step;
}

}  // namespace draftproof
