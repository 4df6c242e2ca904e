#include "gpu/reference_executor/row_status.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/numerics/fixed_point.hpp"
#include "reference/numerics/unsigned_128.hpp"

namespace draftproof::reference_executor {

std::int32_t status_of_logits(std::span<const float> logits, bool limited) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto any = [&](auto is) { return std::any_of(logits.begin(), logits.end(), is); };
  if (any([](float x) { return std::isnan(x); })) return DRAFTPROOF_ROW_NAN_LOGIT;
  if (any([](float x) { return x == kInfinity; })) return DRAFTPROOF_ROW_INFINITE_LOGIT;
  if (limited && any([](float x) { return x > kLogitLimit; })) return DRAFTPROOF_ROW_LOGIT_TOO_LARGE;
  // A greedy row can choose any finite logit; masses need one that is not far below all limits.
  const float least = limited ? -kLogitLimit : -std::numeric_limits<float>::max();
  if (!any([&](float x) { return x >= least; })) return DRAFTPROOF_ROW_NOTHING_LEFT;
  return DRAFTPROOF_ROW_OK;
}

std::int32_t status_of_probabilities(std::span<const float> probabilities) {
  Unsigned128 sum = 0;  // in fixed point, so that the verdict has no order
  for (const float p : probabilities) {
    if (!(p >= 0.0f && p <= 1.0f)) return DRAFTPROOF_ROW_BAD_PROBABILITY;
    sum += residual_mass(static_cast<double>(p));
  }
  if (sum > static_cast<Unsigned128>(3) << kResidualBits) return DRAFTPROOF_ROW_BAD_SUM;
  return sum == 0 ? DRAFTPROOF_ROW_ALL_ZERO : DRAFTPROOF_ROW_OK;
}

}  // namespace draftproof::reference_executor
