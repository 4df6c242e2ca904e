#include "reference/logits/guidance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

RowError bad_pair(const RowName& row, std::size_t column, float l_c, float l_u, const std::string& what) {
  return {RowStatus::bad_guidance, row, static_cast<std::int64_t>(column),
          "the conditional logit is " + std::to_string(l_c) + " and the unconditional " + std::to_string(l_u) + "; " +
              what};
}

// l_u + s (l_c - l_u) of l = log(p + 1e-10).
double guided_log(double conditional, double unconditional, double scale) {
  constexpr double kFloor = 1e-10;
  const double l_u = natural_log(unconditional + kFloor);
  return l_u + scale * (natural_log(conditional + kFloor) - l_u);
}

std::vector<float> probabilities_of(std::span<const float> logits, const RowName& row) {
  std::vector<float> masked(logits.begin(), logits.end());
  std::replace_if(
      masked.begin(), masked.end(), [](float l) { return std::isnan(l); }, kMasked);
  LogitsDistribution distribution;
  distribution.assign(masked, row);
  std::vector<float> probabilities(logits.size());
  for (std::size_t t = 0; t < distribution.tile_count(); ++t)
    distribution.tile_probabilities(t, probabilities.data() + t * kTileTokens);
  return probabilities;
}

// Of logits of which one is finite and none above.
template <class Logits>
std::vector<double> softmax(const Logits& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probabilities;
  double total = 0.0;
  for (const double l : logits) total += probabilities.emplace_back(natural_exp(l - largest));
  for (double& p : probabilities) p /= total;
  return probabilities;
}

}  // namespace

void combine_guidance(std::span<const float> conditional, std::span<const float> unconditional, float scale,
                      const RowName& row, std::span<float> out, GuidanceForm form) {
  if (unconditional.size() != conditional.size())
    throw input_error("row " + std::to_string(row.number),
                      "the unconditional row has " + std::to_string(unconditional.size()) +
                          " logits and the conditional row " + std::to_string(conditional.size()) +
                          "; they must agree");
  if (scale == 1.0f) {
    std::copy(conditional.begin(), conditional.end(), out.begin());
    return;
  }
  const bool of_logits = form == GuidanceForm::logits;
  std::vector<float> p_c, p_u;
  if (!of_logits) {
    p_c = probabilities_of(conditional, row);
    p_u = probabilities_of(unconditional, row);
  }
  for (std::size_t i = 0; i < conditional.size(); ++i) {
    const float l_c = conditional[i];
    const float l_u = unconditional[i];
    if (std::isnan(l_c) || std::isnan(l_u)) {
      out[i] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    if (l_c == -kMasked || l_u == -kMasked) throw bad_pair(row, i, l_c, l_u, "expected no +inf");
    if (of_logits && l_u == kMasked && l_c != kMasked)
      throw bad_pair(row, i, l_c, l_u, "mask tokens after the combination, or in both rows");
    if (of_logits && l_c == kMasked) {
      out[i] = kMasked;
      continue;
    }
    out[i] = of_logits ? l_u + scale * (l_c - l_u) : static_cast<float>(guided_log(p_c[i], p_u[i], scale));
    // A finite pair that overflows would be masked, or become a NaN, without a word.
    if (!std::isfinite(out[i]))
      throw bad_pair(row, i, l_c, l_u, "combined with scale " + std::to_string(scale) + " they leave the range of f32");
  }
}

std::optional<double> guidance_distance(std::span<const float> conditional, std::span<const float> unconditional,
                                        float scale) {
  std::vector<double> exact;
  for (std::size_t i = 0; i < conditional.size(); ++i) {
    const double l_c = conditional[i], l_u = unconditional[i];
    if (!(l_c < HUGE_VAL && l_u < HUGE_VAL) || (l_u == kMasked && l_c != kMasked)) return std::nullopt;
    exact.push_back(l_c == kMasked ? l_c : l_u + double{scale} * (l_c - l_u));
  }
  if (std::all_of(exact.begin(), exact.end(), [](double l) { return l == kMasked; })) return std::nullopt;
  if (scale == 1.0f) return 0.0;
  std::vector<double> floored = softmax(conditional);
  const std::vector<double> p_u = softmax(unconditional);
  for (std::size_t i = 0; i < floored.size(); ++i) floored[i] = guided_log(floored[i], p_u[i], scale);
  const std::vector<double> p = softmax(exact), q = softmax(floored);
  double distance = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) distance += std::max(p[i] - q[i], 0.0);
  return distance;
}

}  // namespace draftproof
