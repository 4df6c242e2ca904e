// Description of the GPU, and times of work on it. Only builds with CUDA have these.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace draftproof::cuda_executor {

struct GpuDescription {
  std::string name;
  std::string driver;   // CUDA version that the driver supports
  std::string runtime;  // CUDA version that we were built with
  std::string compute_capability;
  int multiprocessors;
  std::int64_t memory_bytes;
  std::int64_t l2_bytes;
};

GpuDescription describe_gpu();

// Bytes read plus bytes written per second by a copy of 1 GiB on the device: the best of 20.
double copy_bandwidth_bytes_per_s();

// Milliseconds of each repeat by CUDA events, after three that are not counted; before each the L2 cache is filled with
// other data.
struct KernelTimes {
  std::vector<double> launched;  // kernel by kernel
  std::vector<double> of_graph;  // as one CUDA graph, as engines decode
};
// run(stream): launches on a cudaStream_t, and nothing that a capture refuses.
KernelTimes milliseconds(int repeats, const std::function<void(void* stream)>& run);

}  // namespace draftproof::cuda_executor
