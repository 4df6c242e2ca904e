// Sorting integers in shared memory by the threads of a block.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// The power of two that sort_descending wants room for.
__device__ inline std::uint32_t sorted_room(std::uint32_t count) {
  std::uint32_t room = 2;
  while (room < count) room *= 2;
  return room;
}

// Descending (a bitonic network). list: room for sorted_room(count) values; those behind `count` become 0. All threads
// call it; values must be written and a barrier passed before. Ends with a barrier.
__device__ inline void sort_descending(Shared<std::uint64_t> list, std::uint32_t count) {
  const std::uint32_t room = sorted_room(count);
  for (std::uint32_t i = count + threadIdx.x; i < room; i += blockDim.x) list[i] = 0;
  __syncthreads();
  for (std::uint32_t run = 2; run <= room; run *= 2) {
    for (std::uint32_t distance = run / 2; distance > 0; distance /= 2) {
      for (std::uint32_t pair = threadIdx.x; pair < room / 2; pair += blockDim.x) {
        const std::uint32_t a = 2 * pair - (pair & (distance - 1));
        const std::uint32_t b = a + distance;
        const std::uint64_t x = list[a];
        const std::uint64_t y = list[b];
        // Runs alternate in direction until the last one.
        const bool descending = (a & run) == 0;
        if (descending ? x < y : x > y) {
          list[a] = y;
          list[b] = x;
        }
      }
      __syncthreads();
    }
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
