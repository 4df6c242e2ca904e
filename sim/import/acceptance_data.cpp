#include "sim/import/acceptance_data.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/metrics/acceptance.hpp"
#include "sim/acceptance/rates.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kStepsMost = std::int64_t{1} << 53;  // what a double counts
constexpr std::size_t kWindowsForErrors = 5;
constexpr double kBoundsMatter = 0.005;  // narrower ones are rounding, or a last draft that was cut

struct Estimate {
  double value = 0.0;
  std::optional<double> error;
};

template <typename Size>
struct Part {
  double mean;
  Size size;
};

// Counted steps: the numerators are counts too, whatever digits the means were printed with.
Estimate estimate_of(const std::vector<Part<Steps>>& parts, bool is_share) {
  std::vector<std::int64_t> counts, trials;
  std::int64_t sum = 0;
  for (const Part<Steps>& part : parts) {
    counts.push_back(std::llround(part.mean * static_cast<double>(part.size.count)));
    trials.push_back(part.size.count);
    sum += part.size.count;
  }
  Estimate estimate;
  const auto ratio = estimate_rate(counts, trials);
  if (!ratio) return estimate;
  estimate.value = ratio->rate;
  if (parts.size() >= kWindowsForErrors)
    estimate.error = ratio->standard_error;
  else if (is_share)
    estimate.error = std::sqrt(std::max(0.0, ratio->rate * (1.0 - ratio->rate)) / static_cast<double>(sum));
  return estimate;
}

// estimate_rate's formula for means whose weights are no counts.
Estimate estimate_of(const std::vector<Part<Weight>>& parts, bool) {
  double sum = 0.0, weights = 0.0, squares = 0.0;
  for (const auto& [mean, weight] : parts) {
    sum += weight.value * mean;
    weights += weight.value;
  }
  Estimate estimate;
  if (weights <= 0.0) return estimate;
  estimate.value = sum / weights;
  if (parts.size() < kWindowsForErrors) return estimate;
  for (const auto& [mean, weight] : parts) squares += std::pow(weight.value * (mean - estimate.value), 2.0);
  const auto n = static_cast<double>(parts.size());
  estimate.error = std::sqrt(n / (n - 1.0) * squares) / weights;
  return estimate;
}

Steps share_of(Steps steps, double share) {
  return Steps(std::llround(share * static_cast<double>(steps.count)));
}
Weight share_of(Weight weight, double share) {
  return Weight(share * weight.value);
}

// Rates by position over the windows that reach it, of counted steps or of weights.
template <typename Size>
class Merger {
 public:
  Merger(const std::vector<AcceptanceWindow>& windows, std::vector<Size> sizes)
      : windows_(windows), sizes_(std::move(sizes)) {}

  Estimate length() const {
    std::vector<Part<Size>> parts;
    for (std::size_t w = 0; w < windows_.size(); ++w)
      parts.push_back(
          {windows_[w].acceptance_length.value_or(acceptance_length_of(windows_[w].survival)) - 1.0, sizes_[w]});
    return estimate_of(parts, false);
  }

  void fill_rates(AcceptanceData& data) const {
    std::size_t longest = 0;
    for (const AcceptanceWindow& window : windows_) longest = std::max(longest, window.survival.size());
    for (std::size_t i = 0; i < longest; ++i) {
      const Bounds share = reach_at(i);
      if (share.high <= 0.0) break;  // no draft was so long
      const Estimate estimate = rate_at(i, 0.5);
      const double before = i == 0 ? 1.0 : data.survival.back();
      const double most = i == 0 ? 1.0 : data.survival_bounds.back().high;
      Bounds bounds{rate_at(i, 1.0).value, std::min(rate_at(i, 0.0).value, most)};
      bounds.low = std::min(bounds.low, bounds.high);
      if (bounds.high - bounds.low < kBoundsMatter) bounds = {estimate.value, estimate.value};
      data.survival.push_back(std::min(std::clamp(estimate.value, bounds.low, bounds.high), before));
      data.survival_bounds.push_back(bounds);
      data.reach.push_back(share);
      if (estimate.error)
        data.survival_error.push_back(std::hypot(*estimate.error, (bounds.high - bounds.low) / std::sqrt(12.0)));
    }
    if (data.survival_error.size() < data.survival.size()) data.survival_error.clear();
    if (std::ranges::all_of(data.survival_bounds, &Bounds::is_exact)) data.survival_bounds.clear();
    if (std::ranges::all_of(data.reach, [](const Bounds& b) { return b.low == 1.0; })) data.reach.clear();
  }

 private:
  static Bounds reach_of_window(const AcceptanceWindow& window, std::size_t position) {
    if (position >= window.survival.size()) return {};
    return window.reach.empty() ? Bounds{1.0, 1.0} : window.reach[position];
  }
  // `at` 0: as few drafts reached it as may be, 1: as many.
  Estimate rate_at(std::size_t position, double at) const {
    std::vector<Part<Size>> parts;
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      const Bounds reach = reach_of_window(windows_[w], position);
      const double share = std::lerp(reach.low, reach.high, at);
      if (share > 0.0)
        parts.push_back({std::min(1.0, windows_[w].survival[position] / share), share_of(sizes_[w], share)});
    }
    return estimate_of(parts, true);
  }
  // Over the drafts of all windows.
  Bounds reach_at(std::size_t position) const {
    std::vector<Part<Size>> low, high;
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      const Bounds reach = reach_of_window(windows_[w], position);
      low.push_back({reach.low, sizes_[w]});
      high.push_back({reach.high, sizes_[w]});
    }
    return {estimate_of(low, true).value, estimate_of(high, true).value};
  }

  const std::vector<AcceptanceWindow>& windows_;
  std::vector<Size> sizes_;
};

template <typename Size>
std::vector<Size> sizes_of(const std::vector<AcceptanceWindow>& windows) {
  std::vector<Size> sizes;
  for (const AcceptanceWindow& window : windows)
    if (const auto* size = std::get_if<Size>(&window.size)) sizes.push_back(*size);
  return sizes;
}

template <typename Size>
void merge(const std::vector<AcceptanceWindow>& windows, std::vector<Size> sizes, AcceptanceData& data) {
  const Merger<Size> merger(windows, std::move(sizes));
  merger.fill_rates(data);
  const Estimate mean = merger.length();
  data.acceptance_length = 1.0 + mean.value;
  data.acceptance_length_error = mean.error;
}

void add_notes_on_lengths(AcceptanceData& data) {
  if (data.survival_bounds.empty()) {
    if (!data.reach.empty())
      data.notes.emplace_back("The drafts have several lengths: each position is counted over those that reach it.");
    return;
  }
  std::ostringstream note;
  note.precision(3);
  note
      << "The drafts have several lengths, and the file does not say how many reached each position. Rates are bounds:";
  for (std::size_t i = 0; i < data.survival_bounds.size(); ++i)
    if (const Bounds& b = data.survival_bounds[i]; !b.is_exact())
      note << (note.str().back() == ':' ? " " : ", ") << "position " << i + 1 << " " << b.low << " to " << b.high;
  note << ".";
  data.notes.push_back(note.str());
}

}  // namespace

double factor_of_sum(double last, std::int32_t count, double sum) {
  double low = 0.0, high = 1.0;
  for (int i = 0; i < 60; ++i) {
    const double rate = 0.5 * (low + high);
    double s = last, total = 0.0;
    for (std::int32_t j = 0; j < count; ++j) total += s *= rate;
    (total < sum ? low : high) = rate;
  }
  return 0.5 * (low + high);
}

void require_running(double requests, const std::string& where) {
  constexpr double kMost = 1 << 20;  // as --batch takes
  if (!(requests >= 0.0 && requests <= kMost))
    throw input_error(
        where, "has " + number("%.6g", requests) + " running requests; expected at most " + number("%.0f", kMost));
}

void set_least_draft_len(AcceptanceData& data, double draft_tokens, double steps) {
  constexpr double kRounding = 1e-9;
  const double mean = draft_tokens / steps;
  data.draft_len = static_cast<std::int32_t>(std::min<double>(kAcceptanceDepthMax, std::ceil(mean - kRounding)));
  data.draft_len_is_least = std::abs(mean - std::round(mean)) > kRounding;
}

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

std::vector<Bounds> reach_of(double drafts, double draft_tokens, const std::vector<double>& survival) {
  const auto positions = static_cast<double>(survival.size());
  const double mean = draft_tokens / drafts;
  std::vector<Bounds> reach;
  if (mean >= positions || mean < 1.0) return reach;
  double behind = 0.0;  // accepted at later positions
  for (std::size_t i = survival.size(); i-- > 0;) {
    const auto before = static_cast<double>(i);
    const double high = i == 0 ? 1.0 : std::min(1.0, (mean - 1.0 - behind) / before);
    const double low = i == 0 ? 1.0 : std::max(survival[i], (mean - before) / (positions - before));
    reach.push_back({std::min(low, std::max(high, survival[i])), std::max(high, survival[i])});
    behind += survival[i];
  }
  std::ranges::reverse(reach);
  const auto length = static_cast<std::size_t>(mean);
  if (static_cast<double>(length) == mean && length > 0 && survival[length] == 0.0)
    for (std::size_t i = 0; i < reach.size(); ++i) reach[i] = i < length ? Bounds{1.0, 1.0} : Bounds{};
  return reach;
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
  for (const AcceptanceWindow& window : used)
    if (window.acceptance_length && !(*window.acceptance_length >= 1.0))
      throw input_error(window.where, "the acceptance length is " + number("%g", *window.acceptance_length) +
                                          "; expected at least 1, since the bonus token counts");

  const std::vector<Steps> steps = sizes_of<Steps>(used);
  const std::vector<Weight> weights = sizes_of<Weight>(used);
  if (steps.size() == used.size()) {
    std::int64_t sum = 0;
    for (const Steps& s : steps) {
      if (s.count < 0 || s.count > kStepsMost - sum)
        throw input_error(where, "has " + std::to_string(s.count) + " steps in a window, of " +
                                     std::to_string(kStepsMost) + " at most in all; expected counts of steps");
      sum += s.count;
    }
    if (sum == 0) throw input_error(where, "no step had a draft; expected counters of a server that speculates");
    data.drafts = sum;
    merge(used, steps, data);
  } else if (weights.size() == used.size()) {
    merge(used, weights, data);
  } else {
    if (used.size() > 1)
      data.notes.emplace_back("The windows do not all say how many drafts they had; they are weighted equally.");
    merge(used, std::vector<Weight>(used.size(), Weight(1.0)), data);
  }
  add_notes_on_lengths(data);
  if (data.draft_len == 0) data.draft_len = static_cast<std::int32_t>(data.survival.size());
}

}  // namespace draftproof
