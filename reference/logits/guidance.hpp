// Classifier-free guidance, before everything else: l = l_u + s (l_c - l_u) (Sanchez et al. 2306.17806).
//   logits          exact: l_c and l_u are the logits of the two rows
//   probabilities   they are log(p + 1e-10), p the float32 probabilities of the rows' softmax, the rest in double,
//                   rounded once; a token that both rows forbid gets some mass (bug B104). No kernel takes this form
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reference/logits/parameters.hpp"
#include "reference/sampling/row_status.hpp"

namespace draftproof {

// out [V] from conditional [V] and unconditional [V] logits; out may be either of them. s = 1 gives the conditional row
// bit for bit. A NaN in either row gives NaN, which the NaN policy of the row meets next. Of logits, a token masked
// (-infinity) by the conditional row stays masked; of probabilities it has p = 0, as a NaN has. Errors (input, naming
// the row and the column): a +infinity in either row, a result beyond f32; of logits, a token that only the
// unconditional row masks, since masks belong after the combination; of probabilities, a row that masks all.
void combine_guidance(std::span<const float> conditional, std::span<const float> unconditional, float scale,
                      const RowName& row, std::span<float> out, GuidanceForm form = GuidanceForm::logits);

// Total variation of guidance of probabilities from that of logits, at temperature 1, before masks, penalties and
// filters: in double, summed in the order of ids. Nothing where that of logits has no meaning: a token that the
// unconditional row alone masks, a row without a token, NaN, +infinity.
std::optional<double> guidance_distance(std::span<const float> conditional, std::span<const float> unconditional,
                                        float scale);

}  // namespace draftproof
