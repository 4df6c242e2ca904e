// Which layer of a config is of which kind: families say it in a list, by a pattern, a period, or by their class alone.
#include "sim/cost/layer_kinds.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.hpp"

namespace draftproof {
namespace {

bool contains(const std::vector<double>& numbers, double wanted) {
  return std::ranges::find(numbers, wanted) != numbers.end();
}

constexpr std::array kWords{
    std::pair{"full_attention", Mixer::full},
    std::pair{"attention", Mixer::full},
    std::pair{"full", Mixer::full},
    std::pair{"global", Mixer::full},
    std::pair{"global_attention", Mixer::full},
    std::pair{"deepseek_sparse_attention", Mixer::full},
    std::pair{"indexed_attention", Mixer::full},
    std::pair{"compressed_sparse_attention", Mixer::full},
    std::pair{"heavily_compressed_attention", Mixer::full},
    std::pair{"sliding_attention", Mixer::sliding},
    std::pair{"sliding", Mixer::sliding},
    std::pair{"local", Mixer::sliding},
    std::pair{"local_attention", Mixer::sliding},
    std::pair{"swa", Mixer::sliding},
    std::pair{"chunked_attention", Mixer::chunked},
    std::pair{"linear_attention", Mixer::linear},
    std::pair{"gated_deltanet", Mixer::linear},
    std::pair{"kda", Mixer::kimi},
    std::pair{"lightning_attention", Mixer::lightning},
    std::pair{"lightning", Mixer::lightning},
    std::pair{"mamba", Mixer::mamba},
    std::pair{"mamba2", Mixer::mamba2},
    std::pair{"hybrid", Mixer::parallel},
    std::pair{"conv", Mixer::conv},
    std::pair{"short_conv", Mixer::conv},
    std::pair{"recurrent", Mixer::recurrent},
};

// Kind of a block that is a mixer or a feed-forward: Nemotron's letters and words.
BlockKind single_of(char letter, const ConfigKeys& config) {
  switch (letter) {
    case 'M':
      return {Mixer::mamba2, false, false};
    case '*':
      return {Mixer::full, false, false};
    case '-':
      return {Mixer::none, true, false};
    case 'E':
      return {Mixer::none, true, true};
    default:
      config.fail(std::string("hybrid_override_pattern has '") + letter + "'; expected M, *, - and E");
  }
}

// Mamba of several heads is Mamba-2.
Mixer mamba_of(const ConfigKeys& config) {
  return config.find(keys::kMambaHeads) != nullptr || config.find(keys::kMambaHeadDim) != nullptr ? Mixer::mamba2
                                                                                                  : Mixer::mamba;
}

Mixer mixer_named(const std::string& word, const ConfigKeys& config) {
  const std::string type = config.text("model_type");
  if (word == "attention" && type == "recurrent_gemma") return Mixer::sliding;
  if (word == "hybrid" && shares_blocks(config)) return Mixer::shared;
  if (type == "zamba") return Mixer::mamba;  // of several heads
  // Today's transformers says linear_attention of every mixer with a state; the other keys say which.
  if (word == "linear_attention" && config.find("linear_num_value_heads") == nullptr) {
    if (type.starts_with("minimax")) return Mixer::lightning;
    if (config.find("linear_num_heads") != nullptr || type.starts_with("kimi")) return Mixer::kimi;
    if (config.find(keys::kMambaState) != nullptr) return mamba_of(config);
  }
  for (const auto& [known, mixer] : kWords)
    if (word == known) return mixer == Mixer::mamba ? mamba_of(config) : mixer;
  std::string words;
  for (const auto& [known, mixer] : kWords) words += (words.empty() ? "" : ", ") + std::string(known);
  config.fail("a layer is of the type " + in_quotes(word) + ", which is not known; expected one of " + words);
}

template <class KindOf>
std::vector<Mixer> mixers_by(std::size_t layers, KindOf kind_of) {
  std::vector<Mixer> mixers(layers);
  for (std::size_t i = 0; i < layers; ++i) mixers[i] = kind_of(i);
  return mixers;
}

std::size_t period_of(double period, const ConfigKeys& config) {
  if (period < 1.0 || period > 1e4) config.fail("a period of layers is not from 1 to 10,000");
  return static_cast<std::size_t>(period);
}

// Lists with a number for every layer: 1 is `one`, all else `other`.
std::vector<Mixer> mixers_of_list(const std::vector<double>& list, std::size_t layers, const char* key,
                                  const ConfigKeys& config, Mixer one, Mixer other) {
  if (list.size() < layers)
    config.fail(std::string(key) + " has " + std::to_string(list.size()) + " numbers; expected one for each of " +
                std::to_string(layers) + " layers");
  return mixers_by(layers, [&](std::size_t i) { return list[i] == 1.0 ? one : other; });
}

// Every n-th layer sees everything where the config names the window and leaves the pattern to the class.
double usual_pattern(const std::string& type) {
  if (type == "gemma2" || type == "gpt_oss") return 2.0;
  if (type.starts_with("gemma3n")) return 5.0;
  if (type.starts_with("gemma3") || type.starts_with("gemma4")) return 6.0;
  if (type == "cohere2" || type == "olmo3" || type == "exaone4") return 4.0;
  return 0.0;
}

std::vector<Mixer> mixers_with_windows(const ConfigKeys& config, std::size_t layers) {
  const std::string type = config.text("model_type");
  if (type.starts_with("llama4") && config.number("attention_chunk_size", 0.0) > 0.0) {
    const std::vector<double> rotated = config.numbers("no_rope_layers");  // 0: none, and attention to everything
    const std::size_t interval = period_of(config.number("no_rope_layer_interval", 4.0), config);
    return mixers_by(layers, [&](std::size_t i) {
      return (i < rotated.size() ? rotated[i] == 0.0 : (i + 1) % interval == 0) ? Mixer::full : Mixer::chunked;
    });
  }
  const bool by_default = !type.starts_with("qwen");
  if (const nlohmann::json* const window = config.find(keys::kWindow); window != nullptr && window->is_array())
    return mixers_by(layers, [&](std::size_t i) {
      return config.of_layer(keys::kWindow, i, 0.0) > 0.0 ? Mixer::sliding : Mixer::full;
    });
  if (config.of_layer(keys::kWindow, 0, 0.0) == 0.0 || !config.flag("use_sliding_window", by_default))
    return std::vector<Mixer>(layers, Mixer::full);
  if (const std::string pattern = config.text(keys::kWindowPattern); !pattern.empty())  // "LLLG"
    return mixers_by(layers,
                     [&](std::size_t i) { return pattern[i % pattern.size()] == 'G' ? Mixer::full : Mixer::sliding; });
  const double pattern = config.number(keys::kWindowPattern, usual_pattern(type));
  if (pattern > 0.0)
    return mixers_by(layers, [&, every = period_of(pattern, config)](std::size_t i) {
      return (i + 1) % every == 0 ? Mixer::full : Mixer::sliding;
    });
  if (type.starts_with("qwen")) {
    const double full = config.number("max_window_layers", 0.0);
    return mixers_by(layers,
                     [&](std::size_t i) { return static_cast<double>(i) < full ? Mixer::full : Mixer::sliding; });
  }
  return std::vector<Mixer>(layers, Mixer::sliding);
}

std::vector<Mixer> read_mixers(const ConfigKeys& config, std::size_t layers) {
  const std::string type = config.text("model_type");
  if (shares_blocks(config)) {
    const std::vector<double> shared = config.numbers("hybrid_layer_ids");
    const std::size_t period = period_of(config.number("attn_layer_period", 6.0), config);
    const double offset = config.number("attn_layer_offset", 4.0);
    if (type != "zamba" && shared.empty())
      config.fail(
          "it has neither layers_block_type nor hybrid_layer_ids; expected one, which layers have a shared block");
    return mixers_by(layers, [&](std::size_t i) {  // Zamba's rule begins behind its first block
      const bool is_shared = type != "zamba" ? contains(shared, static_cast<double>(i))
                             : i < 3         ? i == 2
                                             : static_cast<double>((i - 3) % period) == offset;
      return is_shared ? Mixer::shared : type == "zamba" ? Mixer::mamba : Mixer::mamba2;
    });
  }
  if (const std::vector<double> list = config.numbers("attn_type_list"); !list.empty())
    return mixers_of_list(list, layers, "attn_type_list", config, Mixer::full, Mixer::lightning);
  if (const std::vector<double> list = config.numbers("hybrid_layer_pattern"); !list.empty())
    return mixers_of_list(list, layers, "hybrid_layer_pattern", config, Mixer::sliding, Mixer::full);
  if (const auto linear = config.part("linear_attn_config")) {
    const std::vector<double> full = linear->numbers("full_attn_layers");  // counted from 1
    return mixers_by(layers, [&](std::size_t i) {
      return contains(full, static_cast<double>(i) + 1.0) ? Mixer::full : Mixer::kimi;
    });
  }
  if (const double every = config.number("full_attention_interval", 0.0); every > 0.0)
    return mixers_by(layers, [&, period = period_of(every, config)](std::size_t i) {
      return (i + 1) % period == 0 ? Mixer::full : Mixer::linear;
    });
  if (const double every = config.number("layer_group_size", 0.0); every > 1.0)  // Ling of linear attention
    return mixers_by(layers, [&, period = period_of(every, config)](std::size_t i) {
      return (i + 1) % period == 0 ? Mixer::full : Mixer::lightning;
    });
  if (const double every = config.number("attn_layer_period", 0.0); every > 0.0) {
    const auto offset = static_cast<std::size_t>(config.number("attn_layer_offset", 4.0));
    return mixers_by(layers, [&, period = period_of(every, config)](std::size_t i) {
      return i % period == offset % period ? Mixer::full : mamba_of(config);
    });
  }
  if (const std::vector<double> full = config.numbers("attn_layer_indices"); !full.empty())  // Bamba
    return mixers_by(
        layers, [&](std::size_t i) { return contains(full, static_cast<double>(i)) ? Mixer::full : mamba_of(config); });
  if (const std::vector<double> full = config.numbers("full_attn_idxs"); !full.empty())  // LFM2
    return mixers_by(layers,
                     [&](std::size_t i) { return contains(full, static_cast<double>(i)) ? Mixer::full : Mixer::conv; });
  if (const double every = config.number("mamba_step", 0.0); every > 1.0) {  // PLaMo 2
    const std::vector<double> full = config.numbers("full_attention_idx");
    const Mixer attention = config.number(keys::kWindow, 0.0) > 0.0 ? Mixer::sliding : Mixer::full;
    return mixers_by(layers, [&, period = period_of(every, config)](std::size_t i) {
      if (i % period != period / 2) return mamba_of(config);
      return contains(full, static_cast<double>(i)) ? Mixer::full : attention;
    });
  }
  if (type == "gpt_neo") {  // by its own words, else in turns
    const std::vector<std::string> words = config.texts(Names{"attention_layers"});
    return mixers_by(layers, [&](std::size_t i) {
      return (i < words.size() ? words[i] == "local" : i % 2 == 1) ? Mixer::sliding : Mixer::full;
    });
  }
  if (type == "falcon_h1") return std::vector<Mixer>(layers, Mixer::parallel);
  if (type == "mamba" || type == "falcon_mamba") return std::vector<Mixer>(layers, Mixer::mamba);
  if (type == "mamba2") return std::vector<Mixer>(layers, Mixer::mamba2);
  return mixers_with_windows(config, layers);
}

// Has layer i experts?
std::vector<bool> read_expert_layers(const ConfigKeys& config, std::size_t layers) {
  std::vector<bool> has(layers, false);
  if (experts_of(config) <= 1.0) return has;  // one expert is a dense layer
  const auto set = [&](auto rule) {
    for (std::size_t i = 0; i < layers; ++i) has[i] = rule(i);
    return has;
  };
  if (config.find("mlp_layer_types") != nullptr) {
    const std::vector<std::string> types = config.texts(Names{"mlp_layer_types"});
    if (types.size() < layers) config.fail("mlp_layer_types has fewer names than layers; expected one for each");
    return set([&](std::size_t i) { return types[i] != "dense"; });
  }
  const nlohmann::json* const freq = config.find("moe_layer_freq");
  if (freq != nullptr && freq->is_array()) {
    const std::vector<double> list = config.numbers("moe_layer_freq");
    if (list.size() < layers) config.fail("moe_layer_freq has fewer numbers than layers; expected one for each");
    return set([&](std::size_t i) { return list[i] != 0.0; });
  }
  if (const std::string list = config.text("moe_layers_enum"); !list.empty())  // "4,5,6"
    return set(
        [&](std::size_t i) { return ("," + list + ",").find("," + std::to_string(i) + ",") != std::string::npos; });
  if (const std::vector<double> list = config.numbers("moe_layers"); !list.empty())
    return set([&](std::size_t i) { return contains(list, static_cast<double>(i)); });
  if (const double count = config.number("expert_layers", -1.0); count >= 0.0) {  // of a preset
    if (count > static_cast<double>(layers))
      config.fail("expert_layers is " + std::to_string(static_cast<int>(count)) + "; expected at most the layers, " +
                  std::to_string(layers));
    return set([&](std::size_t i) { return static_cast<double>(i) >= static_cast<double>(layers) - count; });
  }
  if (const double every = config.number("expert_layer_period", 0.0); every > 0.0) {  // Jamba
    const auto offset = static_cast<std::size_t>(config.number("expert_layer_offset", 1.0));
    return set([&, period = period_of(every, config)](std::size_t i) { return i % period == offset % period; });
  }
  const double dense = config.number(Names{"first_k_dense_replace", "num_dense_layers", "n_dense_layers"},
                                     config.of_layer("moe_layer_start_index", 0, 0.0));
  const double end = config.of_layer("moe_layer_end_index", 0, 1e6);
  const std::vector<double> mlp_only = config.numbers("mlp_only_layers");
  const double step =
      config.number(Names{"interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval"}, 1.0);
  const double every = freq != nullptr ? config.number("moe_layer_freq", 1.0) : 1.0;
  return set([&](std::size_t i) {
    const auto at = static_cast<double>(i);
    if (at < dense || at > end || contains(mlp_only, at)) return false;
    if (step > 1.0 && (i + 1) % period_of(step, config) != 0) return false;
    return every <= 1.0 || i % period_of(every, config) == 0;
  });
}

}  // namespace

double experts_of(const ConfigKeys& config) {
  return config.flag("is_moe", true) ? config.of_layer(keys::kExperts, 0, 0.0) : 0.0;
}

bool is_compressed(const ConfigKeys& config) {
  return config.find("compress_ratios") != nullptr || config.text("model_type").starts_with("deepseek_v4");
}

double compression_of(const ConfigKeys& config, std::size_t layer) {
  const std::vector<double> ratios = config.numbers("compress_ratios");
  if (layer < ratios.size()) return ratios[layer];
  if (!ratios.empty()) config.fail("compress_ratios has fewer numbers than layers; expected one for each");
  const std::vector<std::string> words = config.texts(keys::kLayerTypes);
  if (layer >= words.size())
    config.fail("it has neither compress_ratios nor layer_types for each of its layers; expected one of them");
  if (words[layer] == "sliding_attention") return 0.0;
  const auto rates = config.part("compress_rates");
  const bool is_heavy = words[layer] == "heavily_compressed_attention";
  const double said = config.number(is_heavy ? "compress_rate_hca" : "compress_rate_csa", is_heavy ? 128.0 : 4.0);
  return rates ? rates->number(words[layer].c_str(), said) : said;
}

bool shares_blocks(const ConfigKeys& config) {
  return config.text("model_type").starts_with("zamba");
}

std::vector<BlockKind> read_layer_kinds(const ConfigKeys& config) {
  std::vector<BlockKind> kinds;
  if (const std::string pattern = config.text("hybrid_override_pattern"); !pattern.empty()) {
    if (pattern.size() > kLayersMost)
      config.fail("hybrid_override_pattern has more than 2,000 letters; expected fewer");
    for (const char letter : pattern) kinds.push_back(single_of(letter, config));
    return kinds;
  }
  std::vector<std::string> types = config.texts(keys::kLayerTypes);
  const bool single = std::ranges::any_of(types, [](const auto& type) { return type == "moe" || type == "mlp"; });
  const auto layers =
      static_cast<std::size_t>(config.find(keys::kLayers) == nullptr && single ? static_cast<double>(types.size())
                                                                               : config.required(keys::kLayers));
  if (layers > kLayersMost) config.fail("num_hidden_layers is " + std::to_string(layers) + "; expected at most 2,000");
  // RecurrentGemma's list is repeated; a layer more is a drafter's.
  if (const std::size_t listed = types.size(); config.find("block_types") != nullptr && listed > 0)
    for (std::size_t i = listed; i < layers; ++i) types.push_back(types[i % listed]);
  if (!types.empty() && types.size() < layers)
    config.fail("it has " + std::to_string(types.size()) + " types of layers; expected one for each of " +
                std::to_string(layers));
  if (single) {
    for (std::size_t i = 0; i < layers; ++i) {
      const bool ffn = types[i] == "moe" || types[i] == "mlp";
      kinds.push_back({ffn ? Mixer::none : mixer_named(types[i], config), ffn, types[i] == "moe"});
    }
    return kinds;
  }
  std::vector<Mixer> mixers;
  if (!types.empty() && config.find("compress_ratios") == nullptr)
    mixers = mixers_by(layers, [&](std::size_t i) { return mixer_named(types[i], config); });
  else
    mixers = read_mixers(config, layers);
  const std::vector<bool> experts = read_expert_layers(config, layers);
  const bool all_feed_forward = !shares_blocks(config);
  for (std::size_t i = 0; i < layers; ++i)
    kinds.push_back({mixers[i], all_feed_forward || mixers[i] == Mixer::shared, experts[i]});
  return kinds;
}

}  // namespace draftproof
