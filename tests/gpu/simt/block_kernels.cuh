// Small right kernels on which the executor is tested. The same text is compiled by nvcc: nothing here knows where it
// runs.
#pragma once

#include <cstdint>

#include "gpu/simt/cuda.hpp"

namespace draftproof {

// The lanes of the calling warp that exist: all 32, or fewer in a partial last warp.
__device__ inline std::uint32_t lanes_of_warp() {
  const std::uint32_t first = threadIdx.x / 32 * 32;
  return blockDim.x - first < 32 ? blockDim.x - first : 32;
}
__device__ inline std::uint32_t mask_of(std::uint32_t lanes) {
  return lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
}

// Lane 0 gets the sum over the first `lanes` lanes of the warp, of which all take part.
__device__ inline std::uint64_t warp_sum(std::uint64_t value, std::uint32_t lanes) {
  const std::uint32_t lane = threadIdx.x % 32;
  for (std::uint32_t step = 16; step != 0; step /= 2) {
    const bool there = lane + step < lanes;
    const std::uint64_t other = __shfl_sync(mask_of(lanes), value, static_cast<int>(there ? lane + step : lane));
    if (there) value += other;
  }
  return value;
}

// sums [gridDim.x]: block b adds the `count` values from b * count on.
__global__ void __launch_bounds__(1024) block_sum(Global<const std::uint32_t> __restrict__ values, std::uint32_t count,
                                                  Global<std::uint64_t> __restrict__ sums) {
  DRAFTPROOF_SHARED(std::uint64_t, warp_sums, 32);
  const std::uint64_t first = static_cast<std::uint64_t>(blockIdx.x) * count;
  std::uint64_t sum = 0;
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) sum += values[first + i];

  sum = warp_sum(sum, lanes_of_warp());
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  const std::uint32_t warps = (blockDim.x + 31) / 32;
  if (threadIdx.x < 32) {
    const std::uint32_t lanes = lanes_of_warp();
    // Where the first warp is partial it is the only one.
    sum = warp_sum(threadIdx.x < warps ? static_cast<std::uint64_t>(warp_sums[threadIdx.x]) : 0, lanes);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  }
}

// sums [blockDim.x]: the inclusive sums of values, by doubling steps in dynamic shared memory of blockDim.x words.
__global__ void block_scan(Global<const std::uint32_t> values, Global<std::uint32_t> sums) {
  DRAFTPROOF_DYNAMIC_SHARED(std::uint32_t, running, 0, blockDim.x);
  const std::uint32_t me = threadIdx.x;
  running[me] = values[me];
  __syncthreads();
  for (std::uint32_t step = 1; step < blockDim.x; step *= 2) {
    const std::uint32_t before = me >= step ? static_cast<std::uint32_t>(running[me - step]) : 0;
    __syncthreads();
    running[me] += before;
    __syncthreads();
  }
  sums[me] = running[me];
}

// counts [16], zero before: how often each low nibble occurs in values [count]; counted in shared memory first.
__global__ void histogram(Global<const std::uint32_t> values, std::uint32_t count, Global<std::uint64_t> counts) {
  DRAFTPROOF_SHARED(std::uint32_t, mine, 16);
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  __syncthreads();
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {
    atomicAdd(&mine[values[i] & 15], 1);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

// out [gridDim.x * blockDim.x / 4 quads]: each thread of the first quarter moves 16 bytes at once through shared
// memory, where bytes, words and quads name the same memory one after the other.
__global__ void reverse_bytes(Global<const std::uint32_t> values, Global<std::uint32_t> out) {
  DRAFTPROOF_DYNAMIC_SHARED(std::uint8_t, bytes, 16, blockDim.x * 4);
  DRAFTPROOF_DYNAMIC_SHARED(uint4, quads, 16, blockDim.x / 4);
  const std::uint32_t quad_count = blockDim.x / 4;
  const std::uint64_t first = static_cast<std::uint64_t>(blockIdx.x) * quad_count;
  if (threadIdx.x < quad_count) quads[threadIdx.x] = view_as<const uint4>(values)[first + threadIdx.x];
  __syncthreads();
  const std::uint32_t last = blockDim.x * 4 - 1;
  for (std::uint32_t i = threadIdx.x; i < blockDim.x * 2; i += blockDim.x) {
    const std::uint8_t low = bytes[i];
    bytes[i] = bytes[last - i];
    bytes[last - i] = low;
  }
  __syncthreads();
  if (threadIdx.x < quad_count) view_as<uint4>(out)[first + threadIdx.x] = quads[threadIdx.x];
}

}  // namespace draftproof
