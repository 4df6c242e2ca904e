#include "sim/cost/model_shape.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/cost/presets.hpp"

namespace draftproof {
namespace {

// The figures by which files describe a model, before its parameters are counted from them.

struct ModelFields {
  std::string name;
  std::string source;
  double layers = 0.0;
  double width = 0.0;
  double heads = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  double ffn = 0.0;   // of layers without experts
  bool gated = true;  // three matrices in a feed-forward, not two
  double vocab = 0.0;
  bool tied = false;
  double experts = 0.0;
  double experts_per_token = 0.0;
  double expert_ffn = 0.0;
  double shared_ffn = 0.0;
  double expert_layers = -1.0;  // -1: all, if there are experts
  double kv_layers = -1.0;      // -1: all
  double kv_values = -1.0;      // -1: keys and values of all KV heads
  double state_values = 0.0;
  double native_bits = 16.0;
  double parameters = 0.0;  // of everything, where the figures above do not give them (latent attention, hybrids)
};

void require(bool holds, const std::string& where, const std::string& what_is_wrong) {
  if (!holds) throw input_error(where, what_is_wrong);
}

std::string text_of(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// Counts the parameters. Input error at `where` if the figures contradict one another.
ModelShape shape_of(const ModelFields& f, const std::string& where) {
  const bool moe = f.experts > 0.0;
  require(f.kv_heads <= f.heads, where,
          "kv_heads is " + text_of(f.kv_heads) + "; expected at most the number of heads, " + text_of(f.heads));
  require(!moe || (f.experts_per_token >= 1.0 && f.experts_per_token <= f.experts), where,
          "experts_per_token is " + text_of(f.experts_per_token) + "; expected 1 .. " + text_of(f.experts) +
              ", the experts");
  require(!moe || f.expert_ffn > 0.0, where, "it has experts but no expert_ffn, the width of one");
  const double expert_layers = !moe ? 0.0 : f.expert_layers < 0.0 ? f.layers : f.expert_layers;
  require(expert_layers <= f.layers, where,
          "expert_layers is " + text_of(expert_layers) + "; expected at most the layers, " + text_of(f.layers));
  require(f.ffn > 0.0 || expert_layers == f.layers, where, "it has no ffn, the width of the feed-forward layers");

  ModelShape shape;
  shape.name = f.name;
  shape.source = f.source;
  shape.layers = f.layers;
  shape.width = f.width;
  shape.heads = f.heads;
  shape.kv_heads = f.kv_heads;
  shape.head_dim = f.head_dim;
  shape.vocab = f.vocab;
  shape.tied = f.tied;
  shape.native_bits = f.native_bits;
  shape.experts = f.experts;
  shape.experts_per_token = moe ? f.experts_per_token : 0.0;
  shape.expert_layers = expert_layers;
  shape.kv_layers = f.kv_layers < 0.0 ? f.layers : std::min(f.kv_layers, f.layers);
  shape.state_values = f.state_values;
  shape.kv_values = f.kv_values < 0.0 ? 2.0 * f.kv_heads * f.head_dim : f.kv_values;

  const double matrices = f.gated ? 3.0 : 2.0;
  const double attention = 2.0 * f.width * f.head_dim * (f.heads + f.kv_heads);
  shape.expert_parameters = matrices * f.width * f.expert_ffn;
  shape.head_parameters = f.width * f.vocab;
  shape.embedding_parameters = f.tied ? 0.0 : f.width * f.vocab;
  shape.body_parameters = f.layers * attention + (f.layers - expert_layers) * matrices * f.width * f.ffn +
                          expert_layers * (matrices * f.width * f.shared_ffn + f.width * f.experts);
  if (f.parameters > 0.0) {
    const double rest = f.parameters - shape.head_parameters - shape.embedding_parameters -
                        f.experts * expert_layers * shape.expert_parameters;
    // Less than a tenth of what was counted: the total is of other parts, or it is wrong.
    require(rest > 0.1 * shape.body_parameters, where,
            "parameters_b is " + text_of(f.parameters / 1e9) +
                "; expected more than head, embedding and experts have, " + text_of((f.parameters - rest) / 1e9));
    shape.body_parameters = rest;
  }
  return shape;
}

ModelShape model_of(const TomlValue& entry) {
  entry.allow_only(
      {"name",       "aliases",       "layers",    "width",     "heads",        "kv_heads",          "head_dim",
       "ffn",        "gated",         "vocab",     "tied",      "experts",      "experts_per_token", "expert_ffn",
       "shared_ffn", "expert_layers", "kv_layers", "kv_values", "state_values", "parameters_b",      "native_bits",
       "source"});
  ModelFields fields;
  fields.name = entry.at("name").text();
  fields.source = entry.text_or("source", entry.where());
  fields.layers = entry.at("layers").number(1, 1e4);
  fields.width = entry.at("width").number(1, 1e6);
  fields.heads = entry.at("heads").number(1, 1e4);
  fields.kv_heads = entry.number_or("kv_heads", fields.heads, 1, 1e4);
  fields.head_dim = entry.number_or("head_dim", fields.width / fields.heads, 1, 1e4);
  fields.ffn = entry.number_or("ffn", 0.0, 0, 1e7);
  fields.gated = entry.flag_or("gated", true);
  fields.vocab = entry.at("vocab").number(1, 1e8);
  fields.tied = entry.flag_or("tied", false);
  fields.experts = entry.number_or("experts", 0.0, 0, 1e5);
  fields.experts_per_token = entry.number_or("experts_per_token", 0.0, 0, 1e5);
  fields.expert_ffn = entry.number_or("expert_ffn", 0.0, 0, 1e7);
  fields.shared_ffn = entry.number_or("shared_ffn", 0.0, 0, 1e7);
  fields.expert_layers = entry.number_or("expert_layers", -1.0, 0, 1e4);
  fields.kv_layers = entry.number_or("kv_layers", -1.0, 0, 1e4);
  fields.kv_values = entry.number_or("kv_values", -1.0, 0, 1e7);
  fields.state_values = entry.number_or("state_values", 0.0, 0, 1e12);
  fields.parameters = 1e9 * entry.number_or("parameters_b", 0.0, 0, 1e5);
  fields.native_bits = entry.number_or("native_bits", 16.0, 1, 64);
  return shape_of(fields, entry.where());
}

const PresetFolder<ModelShape>& model_folder() {
  static const PresetFolder<ModelShape> read = read_presets<ModelShape>("models", "model", model_of);
  return read;
}

// --- config.json of Hugging Face: the names that the families of models use for the same figures.

using Json = nlohmann::json;

class Config {
 public:
  Config(const std::string& text, const std::string& path) : path_(printable_line(path)) {
    json_ = parse_json<Json>(text, path_);
    if (json_.is_discarded()) throw input_error(path_, "it is not JSON; expected a config.json of a language model");
    if (json_.is_object() && json_.contains("text_config")) json_ = Json(json_["text_config"]);
    if (!json_.is_object())
      throw input_error(path_, "it is not a JSON object; expected a config.json of a language model");
  }

  // The first of the keys that is there and not null; `otherwise` where none is.
  double number(std::initializer_list<const char*> keys, double otherwise) const {
    for (const char* key : keys) {
      const auto found = json_.find(key);
      if (found == json_.end() || found->is_null()) continue;
      if (!found->is_number() || !(found->get<double>() >= 0.0 && found->get<double>() <= 1e9))
        throw input_error(path_, std::string(key) + " is " + found->dump() + "; expected a number in [0, 1e9]");
      return found->get<double>();
    }
    return otherwise;
  }

  double required(std::initializer_list<const char*> keys) const {
    const double value = number(keys, 0.0);
    if (value < 1.0)
      throw input_error(path_,
                        std::string("it has no ") + *keys.begin() + "; expected a config.json of a language model");
    return value;
  }

  bool flag(const char* key, bool otherwise) const {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return otherwise;
    if (!found->is_boolean())
      throw input_error(path_, std::string(key) + " is " + found->dump() + "; expected true or false");
    return found->get<bool>();
  }

  std::string text(const char* key) const {
    const auto found = json_.find(key);
    return found != json_.end() && found->is_string() ? found->get<std::string>() : "";
  }

 private:
  Json json_;
  std::string path_;
};

// --- A shape for a model that no preset has, from the number of parameters in its name. Layers and width follow what
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

std::optional<ModelShape> match_model(const std::string& name) {
  const ModelShape* shape = model_folder().match(name, false);
  return shape ? std::optional(*shape) : std::nullopt;
}

std::vector<std::string> model_preset_names() {
  return model_folder().preset_names();
}

ModelShape find_model(const std::string& name_or_path) {
  std::string path = name_or_path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path += "/config.json";
  if (path.ends_with(".json")) return model_from_config_json(std::string(InputFile(path, 16u << 20).text()), path);
  if (path.ends_with(".toml")) return model_of(read_one_preset(path, "model"));
  if (const auto shape = match_model(name_or_path)) return *shape;
  throw input_error("model " + in_quotes(name_or_path),
                    "unknown; expected a preset (nearest: " + near_names(name_or_path, model_folder().names) +
                        "), a TOML file, or a config.json");
}

namespace {

// Numbers of a request's state in a layer of linear attention (keys by values, and what the convolution remembers) or
// of Mamba; 0: the file does not say.
double state_of_a_layer(const Config& config, double width) {
  if (const double heads = config.number({"linear_num_value_heads"}, 0.0); heads > 0.0) {
    const double key = config.number({"linear_key_head_dim"}, 128.0),
                 value = config.number({"linear_value_head_dim"}, key);
    const double mixed = 2.0 * config.number({"linear_num_key_heads"}, heads) * key + heads * value;
    return heads * key * value + mixed * (config.number({"linear_conv_kernel_dim"}, 4.0) - 1.0);
  }
  const double inner = config.number({"mamba_expand"}, 2.0) * width;
  const double state = config.number({"mamba_d_state"}, 0.0);
  return state > 0.0 ? inner * (state + config.number({"mamba_d_conv"}, 4.0) - 1.0) : 0.0;
}

}  // namespace

ModelShape model_from_config_json(const std::string& text, const std::string& path) {
  const Config config(text, path);
  ModelFields f;
  f.name = config.text("_name_or_path").empty() ? printable_line(path) : config.text("_name_or_path");
  f.source = printable_line(path);
  f.layers = config.required({"num_hidden_layers", "n_layer"});
  f.width = config.required({"hidden_size", "n_embd"});
  f.heads = config.required({"num_attention_heads", "n_head"});
  f.kv_heads = config.number({"num_key_value_heads"}, f.heads);
  f.head_dim = config.number({"head_dim"}, f.width / f.heads);
  f.vocab = config.required({"vocab_size"});
  const std::string kind = config.text("model_type");
  f.tied = config.flag("tie_word_embeddings", kind.starts_with("gemma") || kind == "gpt2" || kind == "opt");
  f.gated = kind != "gpt2" && kind != "opt" && kind != "gpt_neox" && kind != "starcoder2" && kind != "bloom";
  f.experts = config.number({"num_experts", "num_local_experts", "n_routed_experts"}, 0.0);
  const double feed_forward = config.number({"intermediate_size", "ffn_dim", "n_inner"}, f.gated ? 0.0 : 4.0 * f.width);
  f.ffn = config.number({"intermediate_size_mlp"}, feed_forward);
  if (f.experts > 0.0) {
    f.experts_per_token = config.required({"num_experts_per_tok", "top_k_experts", "moe_top_k"});
    f.expert_ffn = config.number({"moe_intermediate_size"}, feed_forward);
    f.shared_ffn =
        config.number({"shared_expert_intermediate_size"},
                      config.number({"n_shared_experts"}, kind.starts_with("llama4") ? 1.0 : 0.0) * f.expert_ffn);
    const double first_dense = config.number({"first_k_dense_replace"}, 0.0);
    const double interval =
        config.number({"interleave_moe_layer_step", "decoder_sparse_step", "expert_layer_period"}, 1.0);
    f.expert_layers = (f.layers - first_dense) / (interval < 1.0 ? 1.0 : interval);
  }
  if (!config.text("hybrid_override_pattern").empty())
    throw input_error(
        printable_line(path),
        "its layers are of several kinds (hybrid_override_pattern), which are not counted; expected a TOML "
        "file with its parameters_b and state_values, as the preset Nemotron-H-8B");
  const double attention_interval = config.number({"full_attention_interval", "attn_layer_period"}, 1.0);
  if (attention_interval > 1.0) f.kv_layers = f.layers / attention_interval;
  if (f.kv_layers > 0.0) f.state_values = (f.layers - f.kv_layers) * state_of_a_layer(config, f.width);

  const double latent = config.number({"kv_lora_rank"}, 0.0);
  if (latent == 0.0) return shape_of(f, f.source);
  // Latent attention caches one vector for all heads; its matrices are counted here.
  const double rope = config.number({"qk_rope_head_dim"}, 64.0);
  const double nope = config.number({"qk_nope_head_dim"}, 128.0);
  const double value = config.number({"v_head_dim"}, nope);
  const double query_rank = config.number({"q_lora_rank"}, 0.0);
  const double query =
      query_rank > 0.0 ? query_rank * (f.width + f.heads * (nope + rope)) : f.width * f.heads * (nope + rope);
  const double attention =
      query + f.width * (latent + rope) + latent * f.heads * (nope + value) + f.heads * value * f.width;
  f.kv_values = latent + rope;
  f.kv_heads = std::min(f.kv_heads, f.heads);
  ModelShape shape = shape_of(f, f.source);
  shape.body_parameters += f.layers * (attention - 2.0 * f.width * f.head_dim * (f.heads + f.kv_heads));
  return shape;
}

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
  shape.kv_layers = shape.layers;
  shape.kv_values = 2.0 * shape.kv_heads * shape.head_dim;
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
