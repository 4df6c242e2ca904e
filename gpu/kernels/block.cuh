// Collectives of a block. Blocks here are whole warps: 32 to 1,024 threads, a multiple of 32. Every
// thread of the block calls these functions; each ends with a barrier, so that it can be called again at once.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline constexpr unsigned kAllLanes = 0xffffffff;

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Min {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

__device__ inline std::uint32_t lane_of_thread() {
  return threadIdx.x % 32;
}
__device__ inline std::uint32_t warp_of_thread() {
  return threadIdx.x / 32;
}
__device__ inline std::uint32_t warps_of_block() {
  return blockDim.x / 32;
}

// Every lane gets the combination over the warp. combine: associative and commutative; never a sum of floats.
template <class T, class Combine>
__device__ inline T warp_reduce(T value, Combine combine) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value = combine(value, __shfl_xor_sync(kAllLanes, value, lanes));
  return value;
}

// Every thread gets the combination over the block.
template <class T, class Combine>
__device__ inline T block_reduce(T value, Combine combine) {
  DRAFTPROOF_SHARED(T, of_warp, 32);
  value = warp_reduce(value, combine);
  if (lane_of_thread() == 0) of_warp[warp_of_thread()] = value;
  __syncthreads();
  value = of_warp[0];
  for (std::uint32_t w = 1; w < warps_of_block(); ++w) value = combine(value, static_cast<T>(of_warp[w]));
  __syncthreads();
  return value;
}

// Does the predicate hold in any thread?
__device__ inline bool block_any(bool predicate) {
  return block_reduce<std::uint32_t>(predicate ? 1 : 0, Max{}) != 0;
}

// The sum over the threads before this one, and that over all of them.
template <class T>
struct Scanned {
  T before;
  T total;
};
template <class T>
__device__ inline Scanned<T> block_scan(T value) {
  DRAFTPROOF_SHARED(T, of_warp, 32);
  T inclusive = value;
  for (unsigned lanes = 1; lanes < 32; lanes *= 2) {
    const T other = __shfl_up_sync(kAllLanes, inclusive, lanes);
    if (lane_of_thread() >= lanes) inclusive += other;
  }
  if (lane_of_thread() == 31) of_warp[warp_of_thread()] = inclusive;
  __syncthreads();
  Scanned<T> out{inclusive - value, 0};
  for (std::uint32_t w = 0; w < warps_of_block(); ++w) {
    const T sum = of_warp[w];
    if (w < warp_of_thread()) out.before += sum;
    out.total += sum;
  }
  __syncthreads();
  return out;
}

// One thread's value for all: that of the thread that says so; exactly one must.
template <class T>
__device__ inline T block_broadcast(bool is_source, T value) {
  DRAFTPROOF_SHARED(T, shared, 1);
  if (is_source) shared[0] = value;
  __syncthreads();
  const T out = shared[0];
  __syncthreads();
  return out;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
