// Starts kernels on a GPU: the same call as the CPU executor's (gpu/simt/launch.hpp).
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "base/error.hpp"
#include "gpu/launch_description.hpp"

namespace draftproof {

// Throws Error(internal) naming what was being done and CUDA's own words.
inline void check_cuda(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  throw Error(ErrorKind::internal, what,
              std::string("CUDA says ") + cudaGetErrorName(result) + ": " + cudaGetErrorString(result));
}

// Asynchronous on the description's stream. Throws Error(internal) for a description that a GPU would refuse, and for
// what CUDA reports of the launch itself.
template <class... Parameters, class... Arguments>
void launch(const LaunchDescription& description, void (*kernel)(Parameters...), const Arguments&... arguments) {
  check_description(description);
  const auto dynamic_bytes = static_cast<int>(description.dynamic_shared_bytes);
  constexpr int kWithoutAsking = 48 * 1024;
  if (dynamic_bytes > kWithoutAsking) {
    check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    dynamic_bytes),
               "kernel " + description.kernel);
  }
  const dim3 grid(description.grid.x, description.grid.y, description.grid.z);
  const dim3 block(description.block.x, description.block.y, description.block.z);
  kernel<<<grid, block, description.dynamic_shared_bytes, static_cast<cudaStream_t>(description.stream)>>>(
      arguments...);
  check_cuda(cudaGetLastError(), "kernel " + description.kernel);
}

}  // namespace draftproof
