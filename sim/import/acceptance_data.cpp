#include "sim/import/acceptance_data.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.hpp"
#include "engine/metrics/acceptance.hpp"
#include "sim/acceptance/rates.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kWindowsForErrors = 5;

struct Estimate {
  double value = 0.0;
  std::optional<double> error;
};

// The mean of values that are shares of `drafts` steps each, or of nothing known.
Estimate weighted_mean(const std::vector<double>& values, const std::vector<std::int64_t>& drafts, bool is_share) {
  Estimate estimate;
  if (drafts.empty()) {
    for (const double v : values) estimate.value += v / static_cast<double>(values.size());
    if (values.size() < kWindowsForErrors) return estimate;
    double squares = 0.0;
    for (const double v : values) squares += (v - estimate.value) * (v - estimate.value);
    const auto n = static_cast<double>(values.size());
    estimate.error = std::sqrt(squares / (n - 1.0) / n);
    return estimate;
  }
  std::vector<std::int64_t> counts;
  for (std::size_t w = 0; w < values.size(); ++w)
    counts.push_back(std::llround(values[w] * static_cast<double>(drafts[w])));
  const auto ratio = estimate_rate(counts, drafts);
  if (!ratio) return estimate;
  estimate.value = ratio->rate;
  if (values.size() >= kWindowsForErrors) {
    estimate.error = ratio->standard_error;
  } else if (is_share) {
    std::int64_t steps = 0;
    for (const std::int64_t d : drafts) steps += d;
    estimate.error = std::sqrt(ratio->rate * (1.0 - ratio->rate) / static_cast<double>(steps));
  }
  return estimate;
}

}  // namespace

void require_survival(std::vector<double>& survival, const std::string& where, double rounding) {
  double before = 1.0;
  for (std::size_t i = 0; i < survival.size(); ++i) {
    double& s = survival[i];
    if (!(s >= 0.0 && s <= 1.0))
      throw input_error(where, "acceptance rate " + std::to_string(i + 1) + " is " + std::to_string(s) +
                                   "; expected a number in [0, 1]");
    if (s > before + rounding)
      throw input_error(where, "unconditional rate " + std::to_string(i + 1) + " is " + std::to_string(s) +
                                   ", above the one before it, " + std::to_string(before) +
                                   "; expected rates that never rise");
    before = s = std::min(s, before);
  }
}

void merge_windows(const std::vector<AcceptanceWindow>& windows, const std::string& where, AcceptanceData& data) {
  const auto has_rates = [](const AcceptanceWindow& w) { return !w.survival.empty(); };
  const bool rates = std::ranges::any_of(windows, has_rates);
  std::vector<AcceptanceWindow> used;
  for (const AcceptanceWindow& window : windows)
    if (rates ? has_rates(window) : window.acceptance_length.has_value()) used.push_back(window);
  if (used.empty()) throw input_error(where, "has no acceptance length and no rates; expected one or the other");
  if (used.size() < windows.size()) {
    std::ostringstream note;
    note << windows.size() - used.size() << " windows without per-position rates are left out.";
    data.notes.push_back(note.str());
  }
  data.windows = std::ssize(used);

  std::vector<std::int64_t> drafts;
  for (const AcceptanceWindow& window : used)
    if (window.drafts) drafts.push_back(*window.drafts);
  if (drafts.size() < used.size()) {
    if (!drafts.empty() || used.size() > 1)
      data.notes.emplace_back("The windows do not all say how many drafts they had; they are weighted equally.");
    drafts.clear();
  } else {
    std::int64_t sum = 0;
    for (const std::int64_t d : drafts) sum += d;
    data.drafts = sum;
    if (sum == 0) throw input_error(where, "no step had a draft; expected counters of a server that speculates");
  }

  std::size_t longest = 0;
  for (const AcceptanceWindow& window : used) longest = std::max(longest, window.survival.size());
  bool same_length = true;
  for (std::size_t i = 0; i < longest; ++i) {
    // Over the windows that had drafts so long.
    std::vector<double> values;
    std::vector<std::int64_t> of_drafts;
    for (std::size_t w = 0; w < used.size(); ++w) {
      same_length &= used[w].survival.size() == longest;
      if (i >= used[w].survival.size()) continue;
      values.push_back(used[w].survival[i]);
      if (!drafts.empty()) of_drafts.push_back(drafts[w]);
    }
    const Estimate estimate = weighted_mean(values, of_drafts, true);
    data.survival.push_back(i == 0 ? estimate.value : std::min(estimate.value, data.survival.back()));
    if (estimate.error) data.survival_error.push_back(*estimate.error);
  }
  if (data.survival_error.size() < data.survival.size()) data.survival_error.clear();
  if (!same_length)
    data.notes.emplace_back(
        "The windows have drafts of several lengths: each position is counted over those that reach it.");
  std::vector<double> accepted;
  for (const AcceptanceWindow& window : used)
    accepted.push_back(window.acceptance_length.value_or(acceptance_length_of(window.survival)) - 1.0);
  const Estimate mean = weighted_mean(accepted, drafts, false);
  data.acceptance_length = 1.0 + mean.value;
  data.acceptance_length_error = mean.error;
  if (data.draft_len == 0) data.draft_len = static_cast<std::int32_t>(longest);
}

}  // namespace draftproof
