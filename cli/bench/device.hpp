// draftproof bench --device cuda: the kernels against the bandwidth of the GPU's memory.
#pragma once

#include <string>
#include <vector>

namespace draftproof {

struct DeviceBenchOptions {
  std::string filter;
  int repeat = 100;
  bool quick = false;
  std::string write_inputs;  // a folder, or empty
  std::string out;
  bool json = false;
};

// Error (usage): this build or this machine has no GPU.
void run_device_bench(const DeviceBenchOptions& options, const std::vector<std::string>& arguments);

}  // namespace draftproof
