// CUDA's vector types, as far as kernels use them to load 16 bytes at once.
#pragma once

#include <cstdint>

// NOLINTBEGIN: CUDA's own names
struct alignas(8) uint2 {
  std::uint32_t x, y;
};
struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
// NOLINTEND
