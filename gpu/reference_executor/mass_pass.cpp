#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu/executors.hpp"
#include "gpu/reference_executor/rows.hpp"

namespace draftproof::reference_executor {
namespace {

RowStatus status_of_row(std::span<const float> logits, float temperature, LogitsDistribution& distribution) {
  if (!(temperature > 0.0f && std::isfinite(temperature))) return RowStatus::bad_parameter;
  try {
    distribution.assign(logits, 0);
  } catch (const RowError& error) {
    return error.status();
  }
  return RowStatus::ok;
}

}  // namespace

void mass_pass(const draftproof_mass_pass_arguments& a, const draftproof_settings&) {
  const auto tiles = static_cast<std::size_t>((a.vocab_size + kTileTokens - 1) / kTileTokens);
  std::vector<float> scratch(static_cast<std::size_t>(a.vocab_size));
  LogitsDistribution distribution;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const auto r = static_cast<std::size_t>(row);
    const float temperature = a.temperature == nullptr ? 1.0f : a.temperature[row];
    const float* raw = elements_of(row_view(a.logits, row, a.vocab_size), 0, scratch.size(), scratch.data());
    std::vector<float> logits(raw, raw + a.vocab_size);
    if (temperature != 1.0f)
      for (float& l : logits) l /= temperature;
    std::vector<TileMass> masses(tiles);
    a.status[r] = static_cast<std::int32_t>(status_of_row(logits, temperature, distribution));
    std::int32_t exponent = kMaskedExponent;
    for (std::size_t t = 0; t < tiles && a.status[r] == DRAFTPROOF_ROW_OK; ++t) {
      const std::size_t begin = t * kTileTokens;
      row_kernels().tile_mass(logits.data() + begin, std::min<std::size_t>(kTileTokens, logits.size() - begin),
                              &masses[t]);
      exponent = std::max(exponent, masses[t].n_max);
    }
    a.row_exponent[r] = exponent;
    a.row_total[r] = 0;
    for (std::size_t t = 0; t < tiles; ++t) {
      a.tile_sum[r * tiles + t] = masses[t].sum;
      a.tile_exponent[r * tiles + t] = masses[t].n_max;
      a.row_total[r] += row_scale(masses[t].sum, exponent, masses[t].n_max);
    }
  }
}

}  // namespace draftproof::reference_executor
