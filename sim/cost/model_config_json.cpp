// config.json of Hugging Face: the names that the families of models use for the same figures.
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "sim/cost/model_fields.hpp"

namespace draftproof {
namespace {

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
    const double interval = config.number({"interleave_moe_layer_step", "decoder_sparse_step"}, 1.0);
    f.expert_layers = (f.layers - first_dense) / (interval < 1.0 ? 1.0 : interval);
  }
  const double attention_interval = config.number({"full_attention_interval"}, 1.0);
  if (attention_interval > 1.0) f.kv_layers = f.layers / attention_interval;

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

}  // namespace draftproof
