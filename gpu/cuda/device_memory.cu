#include <memory>
#include <string>

#include "gpu/cuda/launch.cuh"
#include "gpu/device_memory.hpp"

namespace draftproof::cuda_executor {
namespace {

class GpuMemory : public device::DeviceMemory {
 public:
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t result = cudaMalloc(&memory, bytes == 0 ? 1 : bytes);
    if (result == cudaErrorMemoryAllocation)
      throw input_error("GPU memory", "there are no " + std::to_string(bytes) + " bytes left");
    check_cuda(result, "cudaMalloc");
    return memory;
  }
  void release(void* memory) override { cudaFree(memory); }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    check_cuda(cudaDeviceSynchronize(), "waiting for the GPU");
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copying from the GPU");
  }
};

std::string find_out_why_unavailable() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) return std::string("no GPU: CUDA says ") + cudaGetErrorString(result);
  if (count == 0) return "no GPU: CUDA sees none";
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  if (properties.major < 8)
    return std::string("the GPU ") + properties.name + " is older than compute capability 8.0, the least that is built";
  return {};
}

}  // namespace

std::string why_unavailable() {
  static const std::string why = find_out_why_unavailable();  // asked before every call
  return why;
}

std::unique_ptr<device::DeviceMemory> make_device_memory() {
  return std::make_unique<GpuMemory>();
}

}  // namespace draftproof::cuda_executor
