// The row kernels in Google Highway, compiled once per instruction set: the larger ones in simd_*.hpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/row_kernels/row_kernels_simd.cpp"
#include <hwy/foreach_target.h>
// Highway's own header order: foreach_target before highway.
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "reference/row_kernels/row_kernels.hpp"
#include "reference/row_kernels/simd_band.hpp"
#include "reference/row_kernels/simd_mass.hpp"
#include "reference/row_kernels/simd_race.hpp"
#include "reference/row_kernels/simd_residual.hpp"

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

#if !DRAFTPROOF_TARGET_FUSES

RowKernels kernels_of_target() {
  return scalar_row_kernels();
}

#else
TileExtremum maximum(const float* x, std::size_t count) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = count - count % lanes;
  const float infinity = std::numeric_limits<float>::infinity();
  const Padded tail(x + whole, count - whole, -infinity);
  FloatVector largest = hn::Set(d, -infinity);
  auto valid = hn::Eq(largest, largest);
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto v = i < whole ? hn::LoadU(d, x + i) : hn::Load(d, tail.values);
    valid = hn::And(valid, hn::Lt(v, hn::Set(d, infinity)));
    largest = hn::Max(largest, v);
  }
  if (!hn::AllTrue(d, valid)) return scalar_row_kernels().maximum(x, count);
  const float top = hn::GetLane(hn::MaxOfLanes(d, largest));
  // -0 and +0 are one value: the first element that equals the maximum is what the scalar loop finds.
  const auto index = top == -infinity ? 0 : std::find(x, x + count, top) - x;
  return {x[index], static_cast<std::int32_t>(index), true};
}

void divide(const float* x, std::size_t count, float divisor, float* out) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto by = hn::Set(d, divisor);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Div(hn::LoadU(d, x + i), by), d, out + i);
  for (; i < count; ++i) out[i] = x[i] / divisor;
}

void convert_f16(const std::uint16_t* in, std::size_t count, float* out) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto half = hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(in + i));
    const FloatVector v = hn::PromoteTo(d, half);
    hn::StoreU(v, d, out + i);
    // The instruction quiets a signalling NaN, the definition does not.
    if (!hn::AllTrue(d, hn::Eq(v, v))) scalar_row_kernels().convert_f16(in + i, lanes, out + i);
  }
  scalar_row_kernels().convert_f16(in + i, count - i, out + i);
}

void convert_bf16(const std::uint16_t* in, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16);
}

RowKernels kernels_of_target() {
  return {hwy::TargetName(HWY_TARGET),
          tile_mass,
          tile_weights,
          tile_range,
          weigh_tile,
          tile_band,
          keep_in_tile,
          weight_sum,
          scale_weights,
          residual,
          maximum,
          log_weights_of,
          race,
          divide,
          convert_f16,
          convert_bf16};
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/error.hpp"
#include "base/simd_targets.hpp"

namespace draftproof {

std::vector<RowKernels> available_row_kernels() {
  return kernels_of_every_target(std::vector{scalar_row_kernels()}, DRAFTPROOF_TARGETS_OF(kernels_of_target));
}

namespace {
RowKernels& chosen_row_kernels() {
  static RowKernels chosen = DRAFTPROOF_TARGETS_OF(kernels_of_target).front()();
  return chosen;
}
}  // namespace

const RowKernels& row_kernels() {
  return chosen_row_kernels();
}

void select_row_kernels(const std::string& target) {
  std::string names;
  for (const RowKernels& kernels : available_row_kernels()) {
    if (target == kernels.target) {
      chosen_row_kernels() = kernels;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(kernels.target);
  }
  throw usage_error("--simd", "'" + target + "' is not one of the sets this processor runs: " + names);
}

}  // namespace draftproof
#endif
