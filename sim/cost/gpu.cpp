#include "sim/cost/gpu.hpp"

#include <initializer_list>
#include <sstream>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"
#include "sim/cost/presets.hpp"
#include "sim/cost/quantization.hpp"

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

bool has(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (text.find(word) != std::string::npos) return true;
  return false;
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

Precision precision_of(const std::string& text) {
  std::string lower = lower_case(text);
  // Text after "kv" up to a comma describes the cache.
  std::string cache;
  const std::size_t kv = lower.find("kv");
  if (kv != std::string::npos) {
    const std::size_t begin = lower.rfind(',', kv) == std::string::npos ? kv : lower.rfind(',', kv);
    const std::size_t end = lower.find_first_of(",;", kv);
    cache = lower.substr(begin, end == std::string::npos ? end : end - begin);
    lower.erase(begin, cache.size());
  }
  Precision precision;
  if (const auto format = format_in(lower)) {
    precision.weight_bytes = format->bytes;
    precision.compute_bits = format->compute_bits;
    precision.weights = format->name;
    if (format->bytes >= 4.0) precision.head_bytes = precision.kv_bytes = 4.0;
  }
  if (has(cache, {"8"})) precision.kv_bytes = 1.0;
  if (has(cache, {"fp4", "int4", "4bit"})) precision.kv_bytes = 0.5;
  return precision;
}

Precision stated_precision(const std::string& text, const std::string& where, const Precision& usual) {
  bool weights = false;
  std::istringstream parts(lower_case(text) + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const bool is_known = format_in(part) || has(part, {"bf16", "fp16", "float16", "16-bit", "16bit", "16 bit"});
    if (!is_known)
      throw usage_error(where,
                        "is " + in_quotes(text) + "; expected a precision, as bf16, fp8, awq-int4 or \"bf16, KV fp8\"");
    weights |= !has(part, {"kv"});
  }
  Precision precision = precision_of(text);
  if (weights) return precision;
  const double kv_bytes = precision.kv_bytes;
  precision = usual;
  precision.kv_bytes = kv_bytes;
  return precision;
}

std::string name_of(const Precision& precision) {
  const double bytes = precision.weight_bytes;
  std::string weights = precision.weights;
  if (weights.empty()) weights = bytes >= 4.0 ? "32-bit" : bytes >= 2.0 ? "16-bit" : bytes >= 1.0 ? "8-bit" : "4-bit";
  if (!precision.experts.empty() && precision.experts != weights) weights = precision.experts + " experts, " + weights;
  const auto kv_bits = static_cast<int>(8.0 * precision.kv_bytes);
  return weights + " weights" + (kv_bits >= 16 ? std::string() : ", " + std::to_string(kv_bits) + "-bit KV");
}

}  // namespace draftproof
