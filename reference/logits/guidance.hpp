// Classifier-free guidance of logits: l = l_u + s (l_c - l_u) (Sanchez et al. 2306.17806), before everything else.
#pragma once

#include <cstdint>
#include <span>

#include "reference/sampling/row_status.hpp"

namespace draftproof {

// out [V] from conditional [V] and unconditional [V] logits; out may be either of them. s = 1 gives the conditional row
// bit for bit. A token masked (-infinity) by the conditional row stays masked; a NaN in either row gives NaN, which the
// NaN policy of the row meets next. Errors (input, naming the row and the column): a +infinity in either row, a result
// beyond f32, and a token that only the unconditional row masks, since masks belong after the combination.
void combine_guidance(std::span<const float> conditional, std::span<const float> unconditional, float scale,
                      const RowName& row, std::span<float> out);

}  // namespace draftproof
