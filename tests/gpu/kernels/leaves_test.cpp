// Leaves that kernels have of their own, against those of reference/numerics.
#include <catch2/catch.hpp>

#include "gpu/kernels/mass_tile.cuh"

namespace draftproof::simt_executor {
namespace {

TEST_CASE("the kernels widen every binary16 as the reference does") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float ours = to_float(Float16{static_cast<std::uint16_t>(bits)});
    const float reference = f16_to_f32(static_cast<std::uint16_t>(bits));
    if (bit_cast<std::uint32_t>(ours) != bit_cast<std::uint32_t>(reference)) {
      FAIL("0x" << std::hex << bits << " gives " << ours << ", not " << reference);
    }
  }
}

// Every weight that a tile can hold has one of these: 24-bit significands at each depth below the tile's exponent.
TEST_CASE("the kernels' 32-bit sums of masses are those of 64-bit integers") {
  std::uint64_t state = 1;
  const auto random = [&] { return state = state * 6364136223846793005u + 1442695040888963407u; };
  for (int depth = 0; depth <= 61; ++depth) {
    MassSum sum(0);
    std::uint64_t expected = 0;
    for (int i = 0; i < 128; ++i) {
      // 0.707 to 1.415, with ties of the rounding among them: low bits all zero but one.
      const std::uint64_t r = random();
      const std::uint32_t fraction = i % 4 == 0 ? 1u << (r % 23) : static_cast<std::uint32_t>(r >> 41);
      const float f = bit_cast<float>(0x3f800000u | (fraction & 0x3fffffu)) * (i % 2 == 0 ? 1.0f : 0.75f);
      const float weight = scale_by_power_of_two(f > 1.414f ? 1.0f : f, -depth);
      sum.add_weight(weight);
      expected += mass_of_weight(weight);
    }
    INFO("depth " << depth);
    CHECK(sum.sum() == expected);
  }
}

TEST_CASE("the kernels' fast route gives the mass of exp_parts and tile_weight over the range of a tile") {
  for (const float largest : {0.0f, 1.0f, -3.7f, 88.0f, -500.25f, 64999.0f, -64999.0f}) {
    const std::int32_t exponent = exp_parts(largest).n;
    const float lowest = MassSum(exponent).lowest();
    for (int i = 0; i <= 4000; ++i) {
      const float x = largest - static_cast<float>(i) * 0x1.1p-6f;
      const std::uint64_t expected = mass_of_weight(tile_weight(exp_parts(x), exponent));
      MassSum sum(exponent);
      sum.add(x > lowest ? x : lowest);
      if (sum.sum() != expected)
        FAIL("logit " << x << " under " << largest << ": " << sum.sum() << ", not " << expected);
    }
  }
}

}  // namespace
}  // namespace draftproof::simt_executor
