#include "sim/cost/gpu.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"
#include "sim/cost/preset_folder.hpp"

namespace draftproof {
namespace {

constexpr double kPcieGigabytes = 25.0;  // a second, PCIe 4.0 x16 in practice

Gpu gpu_of(const TomlValue& entry) {
  entry.allow_only({"name", "aliases", "memory_gb", "bandwidth_gb_s", "bf16_tflops", "fp8_tflops", "fp4_tflops",
                    "link_gb_s", "source"});
  Gpu gpu;
  gpu.name = entry.at("name").text();
  gpu.source = entry.text_or("source", entry.where());
  gpu.memory_bytes = 1e9 * entry.at("memory_gb").number(0.1, 1e5);
  gpu.bandwidth = 1e9 * entry.at("bandwidth_gb_s").number(0.1, 1e6);
  gpu.bf16_flops = 1e12 * entry.at("bf16_tflops").number(1e-3, 1e6);
  gpu.fp8_flops = 1e12 * entry.number_or("fp8_tflops", gpu.bf16_flops / 1e12, 1e-3, 1e6);
  gpu.has_fp8 = entry.find("fp8_tflops") != nullptr;
  gpu.fp4_flops = 1e12 * entry.number_or("fp4_tflops", gpu.fp8_flops / 1e12, 1e-3, 1e6);
  gpu.link_bandwidth = 1e9 * entry.number_or("link_gb_s", kPcieGigabytes, 1e-3, 1e5);
  return gpu;
}

const PresetFolder<Gpu>& gpu_folder() {
  static const PresetFolder<Gpu> read = read_presets<Gpu>("gpus", "gpu", gpu_of);
  return read;
}

}  // namespace

std::optional<Gpu> match_gpu(const std::string& name) {
  const Gpu* gpu = gpu_folder().match(name);
  return gpu ? std::optional(*gpu) : std::nullopt;
}

std::vector<std::string> gpu_preset_names() {
  return gpu_folder().preset_names();
}

Gpu find_gpu(const std::string& name_or_path) {
  if (name_or_path.ends_with(".toml")) return gpu_of(read_one_preset(name_or_path, "gpu"));
  if (const auto gpu = match_gpu(name_or_path)) return *gpu;
  throw input_error(
      "GPU " + in_quotes(name_or_path),
      "unknown; expected a preset (nearest: " + near_names(name_or_path, gpu_folder().names) + ") or a TOML file");
}

}  // namespace draftproof
