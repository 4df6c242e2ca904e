#include "reference/logits/guidance.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "reference/error.hpp"

namespace draftproof {

void combine_guidance(std::span<const float> conditional, std::span<const float> unconditional, float scale,
                      std::int64_t row, std::span<float> out) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  if (unconditional.size() != conditional.size())
    throw input_error("row " + std::to_string(row), "the unconditional row has " +
                                                        std::to_string(unconditional.size()) +
                                                        " logits and the conditional row " +
                                                        std::to_string(conditional.size()) + "; they must agree");
  if (scale == 1.0f) {
    std::copy(conditional.begin(), conditional.end(), out.begin());
    return;
  }
  for (std::size_t i = 0; i < conditional.size(); ++i) {
    const float l_c = conditional[i];
    const float l_u = unconditional[i];
    if (l_u == kMasked && l_c != kMasked)
      throw input_error(
          "row " + std::to_string(row) + ", column " + std::to_string(i),
          "the unconditional logit is -inf and the conditional one is not; mask tokens after the combination");
    out[i] = l_c == kMasked ? kMasked : l_u + scale * (l_c - l_u);
  }
}

}  // namespace draftproof
