// An accelerator: the peak rates of one device.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace draftproof {

struct Gpu {
  std::string name;
  std::string source;
  double memory_bytes = 0.0;
  double bandwidth = 0.0;   // bytes a second
  double bf16_flops = 0.0;  // operations a second, dense
  double fp8_flops = 0.0;   // as bf16 where the device has no such units
  bool has_fp8 = false;
  double fp4_flops = 0.0;       // as fp8 likewise
  double link_bandwidth = 0.0;  // bytes a second in one direction to its peers; a typical PCIe link where unknown
};

// A preset by a name as people write it ("A100", "NVIDIA H200 141GB"), or a TOML file of one [gpu] (fields as in
// sim/presets/gpus). Input error for an unknown name, with the nearest ones.
Gpu find_gpu(const std::string& name_or_path);
// The preset alone; nothing where none matches.
std::optional<Gpu> match_gpu(const std::string& name);
std::vector<std::string> gpu_preset_names();

}  // namespace draftproof
