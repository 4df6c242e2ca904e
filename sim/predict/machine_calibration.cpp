#include "sim/predict/machine_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/archives/text_file.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/import/read_acceptance.hpp"
#include "sim/import/sglang_log.hpp"
#include "sim/import/text_lines.hpp"
#include "sim/import/vllm_log.hpp"

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

constexpr std::uint64_t kLogBytesMax = std::uint64_t{1} << 30;

struct Steady {
  double running = 0.0;
  double tokens_per_second = 0.0;
};

// The throughput at the most frequent number of running requests, in windows of decoding alone.
Steady steady_of(const std::vector<ThroughputWindow>& windows, const std::string& name) {
  constexpr double kPromptShare = 0.05;
  std::map<double, std::vector<double>> by_running;
  for (const bool decoding_alone : {true, false}) {
    for (const ThroughputWindow& w : windows)
      if (w.running >= 1.0 && w.tokens_per_second > 0.0 &&
          (!decoding_alone || w.prompt_tokens_per_second <= kPromptShare * w.tokens_per_second))
        by_running[w.running].push_back(w.tokens_per_second);
    if (!by_running.empty()) break;
  }
  if (by_running.empty())
    throw input_error(name, "no line of throughput has running requests; expected a log of a server under load");
  auto& [running, rates] = *std::ranges::max_element(
      by_running, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::ranges::nth_element(rates, rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2));
  return {running, rates[rates.size() / 2]};
}

// Each request gets `tokens` of a step.
MeasuredStep with_load(MeasuredStep step, const Steady& steady, double tokens) {
  step.batch.batch = std::llround(steady.running);
  step.ms = 1e3 * steady.running * tokens / steady.tokens_per_second;
  return step;
}

MeasuredStep measured_step_of_dumps(const AcceptanceData& data, const std::string& name, const BatchLoad& batch) {
  if (data.throughput.empty())
    throw input_error(name,
                      "does not say how long steps took; expected vllm:inter_token_latency_seconds, "
                      "vllm:iteration_tokens_total and vllm:generation_tokens_total in both dumps");
  MeasuredStep step;
  step.batch = batch;
  step.form = {data.draft_len, data.draft_len};
  step.draft_share = data.draft_share.value_or(1.0);
  return with_load(step, steady_of(data.throughput, name), data.tokens_per_step());
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
    return [&step, this](const StepCost& model) {
      return std::log(speculative_step_ns(model, step.batch, step.form, kind_, step.draft_share) * 1e-6);
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
    return std::log(speculative_step_ns(model, batch, form, kind_, draft_share) / plain_step_ns(model, batch));
  });
  double prior = 0.0;
  for (std::size_t i = 0; i < slope.size(); ++i) prior += slope[i] * slope[i] * prior_variance_[i];
  if (prior <= 0.0) return 1.0;
  return std::clamp(dot(slope, product(covariance_, slope)) / prior, 0.0, 1.0);
}

MeasuredStep measured_step_of_log(std::string_view log, const std::string& name, const BatchLoad& batch) {
  MeasuredStep step;
  step.batch = batch;
  double tokens = 1.0;
  std::vector<ThroughputWindow> windows;
  if (is_sglang_log(log) && !is_vllm_log(log)) {
    const AcceptanceData data = read_sglang_log(log, name);
    windows = data.throughput;
    step.form = {data.tree_nodes > 0 ? data.tree_nodes : data.draft_len, data.draft_len};
    tokens = data.tokens_per_step();
    if (data.draft_len < 1)
      throw input_error(name, "does not say how many tokens a draft has; expected speculative_num_steps");
  } else {
    windows = read_vllm_throughput(log, name);
  }
  if (has_words(log, "SpecDecoding metrics")) {
    const AcceptanceData data = read_vllm_log(log, name);
    step.form = {data.draft_len, data.draft_len};
    step.draft_share = data.draft_share.value_or(1.0);
    tokens = data.tokens_per_step();
    if (data.draft_len < 1)
      throw input_error(name, "does not say how many tokens a draft has; expected per-position acceptance rates");
  }
  return with_load(step, steady_of(windows, name), tokens);
}

MeasuredStep read_measured_step(const std::string& text, const BatchLoad& batch, const std::string& where) {
  const std::size_t at = text.find('@');
  const auto ms = read_number(text.substr(0, at));
  if (!ms && names_two_dumps(text)) return measured_step_of_dumps(read_acceptance(text), text, batch);
  if (!ms) return measured_step_of_log(read_text(text, kLogBytesMax), text, batch);
  MeasuredStep step;
  step.ms = *ms;
  step.batch = batch;
  if (at == std::string::npos) return step;
  const std::string rest = text.substr(at + 1);
  const std::size_t colon = rest.find(':');
  const auto size = read_integer(rest.substr(0, colon), 1, 1 << 20);
  const auto drafts = colon == std::string::npos ? std::optional<std::int64_t>(0)
                                                 : read_integer(rest.substr(colon + 1), 0, kAcceptanceDepthMax);
  if (!size || !drafts)
    throw usage_error(where, "is " + in_quotes(text) + "; expected MS, MS@BATCH, MS@BATCH:DRAFTS, or a log");
  step.batch.batch = *size;
  step.form = {static_cast<std::int32_t>(*drafts), static_cast<std::int32_t>(*drafts)};
  return step;
}

}  // namespace draftproof
