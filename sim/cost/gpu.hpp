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

// Bytes of weights and of the KV cache, and which units multiply.

struct Precision {
  double weight_bytes = 2.0;   // of one parameter; of 4 bits with their scales 0.55
  double head_bytes = 2.0;     // of the matrix over the vocabulary, which quantisers leave as it is
  double kv_bytes = 2.0;       // of one cached number
  double compute_bits = 16.0;  // of the multiplication: weights of 4 bits that are unpacked multiply in 16
  // Format of routed experts; 0: as the other weights.
  double expert_bytes = 0.0;
  double expert_compute_bits = 0.0;
  std::string weights, experts;  // formats' names; empty: by the bytes

  double bytes_of_expert() const { return expert_bytes > 0.0 ? expert_bytes : weight_bytes; }
  double flops(const Gpu& gpu) const { return flops_of(compute_bits, gpu); }
  double expert_flops(const Gpu& gpu) const {
    return flops_of(expert_compute_bits > 0.0 ? expert_compute_bits : compute_bits, gpu);
  }

 private:
  static double flops_of(double bits, const Gpu& gpu) {
    return bits <= 4.0 ? gpu.fp4_flops : bits <= 8.0 ? gpu.fp8_flops : gpu.bf16_flops;
  }
};

// From a text as "bf16", "FP8", "weights w4a16, KV fp8", "AWQ-INT4" or the name of a quantised model; 16 bits where the
// text says nothing.
Precision precision_of(const std::string& text);

// The same of a text that must say something. Usage error naming `where` for a part between commas without a known
// word. Of the cache alone ("KV fp8"): the weights are the usual ones.
Precision stated_precision(const std::string& text, const std::string& where, const Precision& usual = {});

// "16-bit weights", "fp8 weights, 8-bit KV".
std::string name_of(const Precision& precision);

}  // namespace draftproof
