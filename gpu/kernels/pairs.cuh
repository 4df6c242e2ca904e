// Two floats at once: one instruction from sm_100 on, two elsewhere; the same bits.
#pragma once

#include <cmath>

#include "gpu/device.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct Pair {
  float first;
  float second;
};

__device__ inline Pair twice(float x) {
  return {x, x};
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
__device__ inline Pair fma_pairs(const Pair& x, const Pair& y, const Pair& z) {
  const float2 out = __ffma2_rn({x.first, x.second}, {y.first, y.second}, {z.first, z.second});
  return {out.x, out.y};
}
__device__ inline Pair add_pairs(const Pair& x, const Pair& y) {
  const float2 out = __fadd2_rn({x.first, x.second}, {y.first, y.second});
  return {out.x, out.y};
}
#else
__device__ inline Pair fma_pairs(const Pair& x, const Pair& y, const Pair& z) {
  return {std::fma(x.first, y.first, z.first), std::fma(x.second, y.second, z.second)};
}
__device__ inline Pair add_pairs(const Pair& x, const Pair& y) {
  return {x.first + y.first, x.second + y.second};
}
#endif

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
