#include "reference/logits/guidance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "gpu/executors.hpp"
#include "gpu/reference_executor/rows.hpp"

namespace draftproof::reference_executor {
void guidance(const draftproof_guidance_arguments& a, const draftproof_settings&) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::span<float> out(a.out + row * a.out_stride, static_cast<std::size_t>(a.vocab_size));
    a.status[row] = std::isfinite(a.scale[row]) ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_PARAMETER;
    try {
      if (a.status[row] == DRAFTPROOF_ROW_OK)
        combine_guidance(floats_of(row_view(a.conditional, row, a.vocab_size)),
                         floats_of(row_view(a.unconditional, row, a.vocab_size)), a.scale[row], row, out);
    } catch (const Error&) {
      a.status[row] = DRAFTPROOF_ROW_BAD_GUIDANCE;
    }
    if (a.status[row] != DRAFTPROOF_ROW_OK) std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
  }
}

}  // namespace draftproof::reference_executor
