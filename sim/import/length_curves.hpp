// Acceptance lengths by model and number of drafts, as benchmarks publish them for synthetic acceptance (InferenceX's
// golden_al_distribution): YAML of two levels of names and, in the third, K: length, the bonus token counted. Blocks
// whose name begins with an underscore are left out.
//
//   qwen3.5-397b-a17b:
//     thinking_on:
//       1: 1.85
//       3: 2.95
#pragma once

#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

bool is_length_curves(std::string_view text);
// The rates whose sums are the lengths: s_1 + .. + s_K = length(K) - 1 for each K of the file, between two of them with
// one factor; where lengths rise by more than those before them did, or fall, the nearest rates that never rise,
// and a note says how near. curve: "MODEL/MODE", MODEL or MODE of the curve to take; empty: the only one. Errors
// (input): naming the line, one that is not of this form, K outside 1 to kAcceptanceDepthMax or not rising, a length
// outside [1, K + 1]; several curves and none chosen, or none of this name.
AcceptanceData read_length_curves(std::string_view text, const std::string& name, const std::string& curve = "");

}  // namespace draftproof
