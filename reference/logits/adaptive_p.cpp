#include "reference/logits/adaptive_p.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/logits/ranked_tokens.hpp"

namespace draftproof {

void adapt_logits(const SamplerParameters& p, const LogitsDistribution& row, std::vector<float>& out) {
  constexpr double kWidth = 0.3;
  constexpr double kPeak = 5.0;
  constexpr double kSharpness = 10.0;
  const auto target = static_cast<double>(p.adaptive_target);
  const double mean = p.adaptive_mean < 0.0f ? target : static_cast<double>(p.adaptive_mean);
  const double aim = std::clamp(2.0 * target - mean, 0.0, 1.0);
  const Ranked tokens = ranked_tokens(row);
  const auto total = static_cast<double>(total_mass(tokens));
  out.assign(static_cast<std::size_t>(row.vocab_size()), -std::numeric_limits<float>::infinity());
  for (const RankedToken& t : tokens) {
    const double d = std::abs(static_cast<double>(t.mass) / total - aim) / kWidth;
    out[static_cast<std::size_t>(t.token)] = static_cast<float>(kPeak - kSharpness * d * d / (1.0 + d));
  }
}

}  // namespace draftproof
