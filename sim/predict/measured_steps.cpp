#include "sim/predict/measured_steps.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/import/text_lines.hpp"
#include "sim/import/vllm_log.hpp"

namespace draftproof {
namespace {

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

}  // namespace

MeasuredStep measured_step_of_log(std::string_view log, const std::string& name, const BatchLoad& batch) {
  MeasuredStep step;
  step.batch = batch;
  double tokens = 1.0;
  const std::vector<ThroughputWindow> windows = read_vllm_throughput(log, name);
  if (has_words(log, "SpecDecoding metrics")) {
    const AcceptanceData data = read_vllm_log(log, name);
    step.form = {data.draft_len, data.draft_len};
    step.draft_share = data.draft_share.value_or(1.0);
    tokens = data.tokens_per_step();
    if (data.draft_len < 1)
      throw input_error(name, "does not say how many tokens a draft has; expected per-position acceptance rates");
  }
  const Steady steady = steady_of(windows, name);
  step.batch.batch = std::llround(steady.running);
  step.ms = 1e3 * steady.running * tokens / steady.tokens_per_second;
  return step;
}

MeasuredStep read_measured_step(const std::string& text, const BatchLoad& batch, const std::string& where) {
  const std::size_t at = text.find('@');
  const auto ms = read_number(text.substr(0, at));
  if (!ms) {
    const InputFile log(text, kLogBytesMax);
    return measured_step_of_log(log.text(), text, batch);
  }
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
