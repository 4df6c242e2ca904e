// The device interface of kernels and of the code that launches them. Their one text is compiled twice: by nvcc for
// GPUs, by the host compiler for the CPU executor. Everything that depends on the compiler lies behind this header:
//
//   DRAFTPROOF_EXECUTOR   the namespace of such code: cuda_executor or simt_executor (both end up in one program)
//   CUDA's names          threadIdx, __syncthreads, __shfl_sync, ...; Global<T>, Shared<T>, DRAFTPROOF_SHARED
//   launch(description, kernel, arguments...)
//   OperationMemory       the memory of one call as pointers that a kernel takes
#pragma once

#include "gpu/draftproof.h"
#include "gpu/launch_description.hpp"

#if defined(__CUDACC__)
#define DRAFTPROOF_EXECUTOR cuda_executor
#define DRAFTPROOF_MEMORY draftproof::cuda::OperationMemory
#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/operation_memory.cuh"
#else
#if !defined(DRAFTPROOF_EXECUTOR)  // a fault (gpu/faults) brings a namespace of its own
#define DRAFTPROOF_EXECUTOR simt_executor
#endif
#define DRAFTPROOF_MEMORY draftproof::simt::OperationMemory
#include "gpu/simt/launch.hpp"
#include "gpu/simt/operation_memory.hpp"
#endif

#include "gpu/simt/cuda.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

using OperationMemory = DRAFTPROOF_MEMORY;

// The launch of a kernel under a caller's settings. threads: the kernel's own choice, where the caller has none.
inline LaunchDescription describe(const draftproof_settings& settings, const char* kernel, std::int64_t blocks,
                                  std::uint32_t threads, std::uint64_t dynamic_shared_bytes = 0) {
  LaunchDescription description;
  description.kernel = kernel;
  description.grid = {static_cast<std::uint32_t>(blocks)};
  description.block = {threads};
  description.dynamic_shared_bytes = dynamic_shared_bytes;
  description.stream = settings.stream;
  description.seed = settings.seed;
  description.os_threads = settings.os_threads > 0 ? settings.os_threads : 1;
  return description;
}

inline std::uint32_t block_threads(const draftproof_settings& settings, std::uint32_t own_choice) {
  return settings.block_threads > 0 ? static_cast<std::uint32_t>(settings.block_threads) : own_choice;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
