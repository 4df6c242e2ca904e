#include "reference/logits/guidance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

RowError bad_pair(const RowName& row, std::size_t column, float l_c, float l_u, const std::string& what) {
  return {RowStatus::bad_guidance, row, static_cast<std::int64_t>(column),
          "the conditional logit is " + std::to_string(l_c) + " and the unconditional " + std::to_string(l_u) + "; " +
              what};
}

}  // namespace

void combine_guidance(std::span<const float> conditional, std::span<const float> unconditional, float scale,
                      const RowName& row, std::span<float> out) {
  if (unconditional.size() != conditional.size())
    throw input_error("row " + std::to_string(row.number),
                      "the unconditional row has " + std::to_string(unconditional.size()) +
                          " logits and the conditional row " + std::to_string(conditional.size()) +
                          "; they must agree");
  if (scale == 1.0f) {
    std::copy(conditional.begin(), conditional.end(), out.begin());
    return;
  }
  for (std::size_t i = 0; i < conditional.size(); ++i) {
    const float l_c = conditional[i];
    const float l_u = unconditional[i];
    if (std::isnan(l_c) || std::isnan(l_u)) {
      out[i] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    if (l_c == -kMasked || l_u == -kMasked) throw bad_pair(row, i, l_c, l_u, "expected no +inf");
    if (l_u == kMasked && l_c != kMasked)
      throw bad_pair(row, i, l_c, l_u, "mask tokens after the combination, or in both rows");
    out[i] = l_c == kMasked ? kMasked : l_u + scale * (l_c - l_u);
    // A finite pair that overflows would be masked, or become a NaN, without a word.
    if (l_c != kMasked && !std::isfinite(out[i]))
      throw bad_pair(row, i, l_c, l_u, "combined with scale " + std::to_string(scale) + " they leave the range of f32");
  }
}

}  // namespace draftproof
