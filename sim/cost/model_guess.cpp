#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "base/strict_number.hpp"
#include "sim/cost/model_shape.hpp"
#include "sim/cost/presets.hpp"

namespace draftproof {
namespace {

// A shape for a model that no preset has, from the number of parameters in its name. Layers and width follow what
// models of that size have; the rest is counted so that the parameters come out.

// Parameters (billions) and layers of dense models: Qwen2.5 0.5B, Llama-3.2 3B, Llama-3.1 8B, Qwen3 14B, Qwen3 32B,
// Llama-3.1 70B, Llama-3.1 405B.
constexpr std::array<std::pair<double, double>, 8> kLayersOfSize{
    {{0.07, 4}, {0.5, 24}, {3.2, 28}, {8.0, 32}, {14.8, 40}, {32.8, 64}, {70.6, 80}, {405.8, 126}}};

double layers_of_size(double billions) {
  if (billions <= kLayersOfSize.front().first) return kLayersOfSize.front().second;
  for (std::size_t i = 1; i < kLayersOfSize.size(); ++i) {
    const auto [size, layers] = kLayersOfSize[i];
    const auto [size_before, layers_before] = kLayersOfSize[i - 1];
    if (billions > size) continue;
    const double share = std::log(billions / size_before) / std::log(size / size_before);
    return std::round(layers_before + share * (layers - layers_before));
  }
  return kLayersOfSize.back().second;
}

// "7b", "0.5b", "68m", "1t" in billions; 0 for other words.
double billions_of(const std::string& word) {
  if (word.size() < 2) return 0.0;
  const double unit = word.back() == 'b' ? 1.0 : word.back() == 'm' ? 1e-3 : word.back() == 't' ? 1e3 : 0.0;
  if (unit == 0.0) return 0.0;
  const auto number = read_number(std::string_view(word).substr(0, word.size() - 1));
  return number && *number > 0.0 && *number < 1e5 ? unit * *number : 0.0;
}

}  // namespace

std::optional<ModelShape> guess_model(const std::string& name) {
  const std::vector<std::string> words = name_words(name);
  double billions = 0.0;
  double active = 0.0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t times = words[i].find('x');
    double size = billions_of(words[i]);
    if (size == 0.0 && times != std::string::npos && times > 0) {  // 8x7b: the attention is shared
      const auto count = read_number(std::string_view(words[i]).substr(0, times));
      const double each = billions_of(words[i].substr(times + 1));
      if (count && *count >= 2.0 && each > 0.0) {
        size = 0.84 * *count * each;
        active = 1.8 * each;
      }
    }
    if (size == 0.0) continue;
    if (billions == 0.0) {
      billions = size;
    } else if (i > 0 && words[i - 1] == "a" && size < billions) {
      active = size;
    }
  }
  if (billions < 0.01 || billions > 20'000.0) return std::nullopt;
  const bool moe = active > 0.0 || billions > 500.0;  // no dense model is that large
  if (moe && active == 0.0) active = 0.04 * billions;

  ModelShape shape;
  shape.name = name;
  shape.assumption = std::string("shape of a typical ") + (moe ? "mixture of experts" : "dense model") + " of its size";
  shape.source = "assumed from the name";
  shape.layers = moe ? (billions < 150.0 ? 48.0 : 61.0) : layers_of_size(billions);
  const double body = 1e9 * (moe ? 0.4 * active : billions);
  // A layer has about 12 width^2 parameters where attention and feed-forward are dense.
  shape.width = 128.0 * std::max(1.0, std::round(std::sqrt((moe ? 2.5 : 1.0) * body / (12.0 * shape.layers)) / 128.0));
  shape.head_dim = 128.0;
  shape.heads = std::max(1.0, shape.width / 128.0);
  shape.kv_heads = std::min(8.0, shape.heads);
  shape.vocab = 128'000.0;
  shape.tied = billions < 4.0;
  shape.cache = {{shape.layers, 2.0 * shape.kv_heads * shape.head_dim, 0, 1, 0, 2.0 * shape.heads * shape.head_dim}};
  shape.head_parameters = shape.width * shape.vocab;
  shape.embedding_parameters = shape.tied ? 0.0 : shape.head_parameters;
  const double tables = shape.head_parameters + shape.embedding_parameters;
  if (!moe) {
    shape.body_parameters = std::max(0.3 * body, body - tables);
    return shape;
  }
  shape.experts = 128.0;
  shape.experts_per_token = 8.0;
  shape.expert_layers = shape.layers;
  shape.expert_parameters = 1e9 * (billions - active) / (shape.layers * (shape.experts - shape.experts_per_token));
  const double routed = shape.experts_per_token * shape.layers * shape.expert_parameters;
  shape.body_parameters = std::max(0.1e9 * active, 1e9 * active - routed - shape.head_parameters);
  return shape;
}

}  // namespace draftproof
