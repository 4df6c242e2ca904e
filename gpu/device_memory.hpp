// Memory of an executor for those who drive it from the host: the regression, the benchmark, the tests. Host memory for
// the reference and the CPU executor, the GPU's for CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gpu/draftproof.h"

namespace draftproof::device {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // At least 256-byte aligned. Errors (input): none left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;   // from the host
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;  // to the host, after all work is done
};

// Error (usage): the executor cannot run here.
std::unique_ptr<DeviceMemory> memory_of(draftproof_executor executor);

}  // namespace draftproof::device

namespace draftproof::cuda_executor {

// Where there is a GPU that runs our kernels: empty; else why not.
std::string why_unavailable();
std::unique_ptr<device::DeviceMemory> make_device_memory();

}  // namespace draftproof::cuda_executor
