#include "sim/acceptance/extrapolation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/beta_mixture.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/tree_survival.hpp"

namespace draftproof {
namespace {

constexpr double kSpread = 0.45;  // of sqrt(mean (1 - mean))
constexpr double kDecay = 0.94;
// Standard deviation of the log acceptance length for a factor e in the number of drafts.
constexpr double kSpreadOfRates = 0.06;
constexpr double kSpreadOfLengths = 0.1;

std::vector<double> survival_with_mean(double mean, std::int32_t depth) {
  return beta_survival(beta_of(mean, kSpread * std::sqrt(mean * (1.0 - mean)), "extrapolation"), kDecay, depth);
}

// The mean for which `length_of` is `length`; it rises with the mean.
double mean_with(double length, const std::function<double(double mean)>& length_of) {
  double low = 1e-6;
  double high = 1.0 - 1e-6;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (length_of(middle) < length ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double distance(std::int32_t from, std::int32_t to) {
  return to == 0 ? 0.0 : std::abs(std::log(static_cast<double>(to) / from));
}

ExtrapolatedSurvival of_mean(double mean, std::int32_t from, std::int32_t depth) {
  return {survival_with_mean(mean, depth), kSpreadOfLengths * distance(from, depth)};
}

void require_length(double length, std::int32_t drafts, const std::string& where) {
  if (drafts < 1 || !(length >= 1.0 && length <= drafts + 1.0))
    throw usage_error(where, "the acceptance length is " + std::to_string(length) + " with " + std::to_string(drafts) +
                                 " drafts; expected a number from 1 (nothing accepted) to drafts + 1, since the bonus "
                                 "token counts");
}

}  // namespace

ExtrapolatedSurvival extrapolate_rates(std::span<const double> survival, std::int32_t depth) {
  const auto known = static_cast<std::int32_t>(survival.size());
  ExtrapolatedSurvival result;
  result.survival.assign(survival.begin(), survival.begin() + std::min(known, depth));
  if (depth <= known) return result;
  if (known == 1) {
    // Beyond full acceptance nothing falls.
    if (survival[0] <= 0.0 || survival[0] >= 1.0) {
      result.survival.assign(static_cast<std::size_t>(depth), survival[0]);
      return result;
    }
    return of_mean(survival[0], 1, depth);
  }
  const double before = survival[survival.size() - 2];
  const double rate = before > 0.0 ? survival.back() / before : 0.0;
  while (std::ssize(result.survival) < depth) result.survival.push_back(result.survival.back() * rate);
  result.length_spread = kSpreadOfRates * distance(known, depth);
  return result;
}

ExtrapolatedSurvival extrapolate_length(double acceptance_length, std::int32_t drafts, std::int32_t depth,
                                        const std::string& where) {
  require_length(acceptance_length, drafts, where);
  const double mean = mean_with(
      acceptance_length, [&](double candidate) { return acceptance_length_of(survival_with_mean(candidate, drafts)); });
  return of_mean(mean, drafts, depth);
}

ExtrapolatedSurvival extrapolate_tree_length(double acceptance_length, std::int32_t nodes, std::int32_t levels,
                                             std::int32_t depth, const std::string& where) {
  require_draft_shape(nodes, levels);
  require_length(acceptance_length, levels, where);
  const double mean = mean_with(acceptance_length, [&](double candidate) {
    const std::vector<double> conditional = conditional_of(survival_with_mean(candidate, levels), where);
    return acceptance_length_of(position_survivals(conditional, levels)[static_cast<std::size_t>(nodes)]);
  });
  ExtrapolatedSurvival result = of_mean(mean, levels, depth);
  // The gain by siblings is a rule of thumb, good to some 5 % (tree_survival.hpp).
  constexpr double kSpreadOfTrees = 0.05;
  result.length_spread = std::hypot(result.length_spread, kSpreadOfTrees);
  return result;
}

}  // namespace draftproof
