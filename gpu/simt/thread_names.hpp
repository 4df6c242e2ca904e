// threadIdx and its kin on the host. They are variables, set by the executor whenever it switches threads, so that
// kernels read them as cheaply as on a GPU.
#pragma once

#include <cstdint>

namespace draftproof::simt {

struct CudaIndex {
  std::uint32_t x, y, z;
};

}  // namespace draftproof::simt

// NOLINTBEGIN: CUDA's own names
inline constinit thread_local draftproof::simt::CudaIndex threadIdx{};
inline constinit thread_local draftproof::simt::CudaIndex blockIdx{};
inline constinit thread_local draftproof::simt::CudaIndex blockDim{};
inline constinit thread_local draftproof::simt::CudaIndex gridDim{};
// NOLINTEND
