// The definition of every row kernel: one element after the other, through the shared leaves.
#include <limits>

#include "base/dtype.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {
namespace {

bool tile_mass(const float* x, std::size_t count, TileMass* out) {
  *out = TileMass{};
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(x[i] <= kLogitLimit)) return false;
    const ExpParts parts = exp_parts(x[i]);
    if (parts.f == 0.0f) continue;
    if (!any || parts.n > out->n_max) out->n_max = parts.n;
    if (!any || parts.n < out->n_min) out->n_min = parts.n;
    any = true;
    ++out->kept;
  }
  for (std::size_t i = 0; i < count; ++i) out->sum += mass_of_weight(tile_weight(exp_parts(x[i]), out->n_max));
  return true;
}

bool tile_range(const float* x, std::size_t count, float divisor, float* quotients, TileMass* out,
                float* group_largest) {
  if (quotients != nullptr) {
    for (std::size_t i = 0; i < count; ++i) quotients[i] = x[i] / divisor;
    x = quotients;
  }
  if (!tile_mass(x, count, out)) return false;
  out->sum = 0;
  for (std::size_t begin = 0; begin < count; begin += kGroupTokens) {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t i = begin; i < count && i < begin + kGroupTokens; ++i)
      if (x[i] >= -kLogitLimit && x[i] > largest) largest = x[i];
    *group_largest++ = largest;
  }
  return true;
}

void tile_weights(const float* x, std::size_t count, std::int32_t n_max, float* weights) {
  for (std::size_t i = 0; i < count; ++i) weights[i] = tile_weight(exp_parts(x[i]), n_max);
}

std::uint64_t weigh_tile(const float* x, std::size_t count, const TileMass& range, float* weights) {
  tile_weights(x, count, range.n_max, weights);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += mass_of_weight(weights[i]);
  return sum;
}

TileBand tile_band(const float* x, const float* weights, std::size_t count, std::int64_t shift, float low, float high,
                   float* band, float* band_weights) {
  TileBand out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t mass = mass_of_weight(weights[i]);
    const std::uint64_t in_row = shift > 63 ? 0 : mass >> shift;
    if (x[i] > high) {
      out.above += mass;
      out.above_in_row += in_row;
      ++out.above_count;
    } else if (x[i] >= low) {
      out.band_in_row += in_row;
      band[out.band_count] = x[i];
      band_weights[out.band_count++] = weights[i];
    }
  }
  return out;
}

TileKept keep_in_tile(const float* x, std::size_t count, const TileCut& cut, float* weights) {
  TileKept out;
  for (std::size_t i = 0; i < count; ++i) {
    const bool in_prefix = x[i] > cut.last_value || (x[i] == cut.last_value && i < cut.position);
    if (!in_prefix || static_cast<double>(mass_of_weight(weights[i])) < cut.least_mass) weights[i] = 0.0f;
    out.sum += mass_of_weight(weights[i]);
    out.kept += weights[i] > 0.0f ? 1 : 0;
  }
  return out;
}

std::uint64_t weight_sum(const float* weights, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += mass_of_weight(weights[i]);
  return sum;
}

void scale_weights(const float* weights, std::size_t count, float power, float reciprocal, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = (weights[i] * power) * reciprocal;
}

TileResidual residual(const float* p, const float* q, std::size_t count) {
  TileResidual out;
  for (std::size_t i = 0; i < count; ++i) {
    const float proposal = q == nullptr ? 0.0f : q[i];
    if (!(p[i] >= 0.0f && p[i] <= 1.0f && proposal >= 0.0f && proposal <= 1.0f)) return {0, 0, false};
    const ResidualMass mass = residual_mass_halves(positive_part_of_difference(p[i], proposal));
    out.high += mass.high;
    out.low += mass.low;
  }
  return carried(out);
}

TileExtremum maximum(const float* x, std::size_t count) {
  TileExtremum out{-std::numeric_limits<float>::infinity(), 0, true};
  for (std::size_t i = 0; i < count; ++i) {
    if (!(x[i] < std::numeric_limits<float>::infinity())) out.valid = false;
    if (x[i] > out.value) out = {x[i], static_cast<std::int32_t>(i), out.valid};
  }
  return out;
}

void log_weights_of(const float* x, const float* weights, std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool counts = weights == nullptr ? x[i] >= -kLogitLimit : weights[i] > 0.0f;
    out[i] = counts ? static_cast<double>(x[i]) : -std::numeric_limits<double>::infinity();
  }
}

RaceWinner race(const double* log_weights, std::size_t count, std::uint32_t first_token, const NoiseAddress& noise,
                RaceWinner best) {
  const std::uint64_t key = (static_cast<std::uint64_t>(noise.key[1]) << 32) | noise.key[0];
  for (std::size_t i = 0; i < count; ++i) {
    if (log_weights[i] == -std::numeric_limits<double>::infinity()) continue;
    const std::uint32_t token = first_token + static_cast<std::uint32_t>(i);
    const RandomBlock block = philox_block(key, token / 4, noise.row, noise.step, noise.purpose);
    const double score = log_weights[i] + gumbel_noise(block.word[token % 4]);
    if (score > best.score) best = {score, token};
  }
  return best;
}

void divide(const float* x, std::size_t count, float divisor, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = x[i] / divisor;
}

void convert_f16(const std::uint16_t* in, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = f16_to_f32(in[i]);
}

void convert_bf16(const std::uint16_t* in, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = bf16_to_f32(in[i]);
}

}  // namespace

const RowKernels& scalar_row_kernels() {
  static constexpr RowKernels kernels{"scalar",     tile_mass,  tile_weights,  tile_range,  weigh_tile, tile_band,
                                      keep_in_tile, weight_sum, scale_weights, residual,    maximum,    log_weights_of,
                                      race,         divide,     convert_f16,   convert_bf16};
  return kernels;
}

}  // namespace draftproof
