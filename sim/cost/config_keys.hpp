// Keys of a model's description: config.json of Hugging Face, and our presets. One table of the names that families
// give to the same figure, and access that refuses a value of another type by its key.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace draftproof {

// Synonyms, the usual one first; a short one is ours in presets.
using Names = std::array<const char*, 10>;

namespace keys {
inline constexpr Names kLayers{"num_hidden_layers", "n_layer", "num_layers", "n_layers", "layers"};
inline constexpr Names kWidth{"hidden_size", "n_embd", "d_model", "model_dim", "dim", "width"};
inline constexpr Names kHeads{
    "num_attention_heads",          "n_head", "n_heads", "num_heads", "num_query_heads", "heads",
    "num_attention_heads_per_layer"};
inline constexpr Names kKvHeads{"num_key_value_heads",          "num_kv_heads",          "n_kv_heads", "n_head_kv",
                                "num_attention_groups",         "multi_query_group_num", "kv_heads",   "kv_n_heads",
                                "num_key_value_heads_per_layer"};
inline constexpr Names kHeadDim{"head_dim", "attention_head_dim", "kv_channels", "head_size", "hidden_size_per_head"};
inline constexpr Names kFfn{"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff", "hidden_dim", "ffn"};
// Size of layers without experts, where intermediate_size is that of an expert.
inline constexpr Names kDenseFfn{"intermediate_size_mlp", "dense_intermediate_size", "dense_ffn_hidden"};
inline constexpr Names kVocab{"vocab_size", "padded_vocab_size", "vocab"};
inline constexpr Names kTied{"tie_word_embeddings", "tie_embeddings", "tied"};
inline constexpr Names kActivation{"hidden_act",     "hidden_activation", "activation_function",
                                   "mlp_hidden_act", "feed_forward_proj", "ffn_act"};
inline constexpr Names kExperts{"num_experts",     "num_local_experts", "n_routed_experts",
                                "moe_num_experts", "experts",           "ffn_num_experts"};
inline constexpr Names kExpertsPerToken{"num_experts_per_tok",
                                        "num_experts_per_token",
                                        "top_k_experts",
                                        "moe_top_k",
                                        "moe_topk",
                                        "num_selected_experts",
                                        "moe_k",
                                        "num_experts_top_k",
                                        "experts_per_token"};
inline constexpr Names kExpertFfn{"moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size",
                                  "expert_intermediate_size", "expert_ffn"};
// Width of what every token passes beside the routed experts, all of it together.
inline constexpr Names kSharedFfn{"shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size",
                                  "shared_ffn"};
inline constexpr Names kSharedExpertFfn{"moe_shared_expert_intermediate_size"};
inline constexpr Names kSharedExperts{"n_shared_experts", "num_shared_experts", "num_shared_expert",
                                      "moe_num_shared_experts"};
inline constexpr Names kExpertWidth{"moe_latent_size", "routed_expert_hidden_size"};
inline constexpr Names kWindow{"sliding_window", "sliding_window_size", "attention_window_size", "window_size"};
inline constexpr Names kWindowPattern{"sliding_window_pattern", "_sliding_window_pattern"};
inline constexpr Names kLayerTypes{"layer_types", "layers_block_type", "block_types", "layer_type"};
inline constexpr Names kMambaState{"mamba_d_state", "ssm_state_size", "state_size", "mamba_state_dim"};
inline constexpr Names kMambaConv{"mamba_d_conv", "conv_kernel", "mamba_conv_kernel", "conv_L_cache"};
inline constexpr Names kMambaExpand{"mamba_expand", "expand"};
inline constexpr Names kMambaHeads{"mamba_num_heads", "mamba_n_heads", "n_mamba_heads"};
inline constexpr Names kMambaHeadDim{"mamba_head_dim", "mamba_d_head", "mamba_headdim", "hidden_size_per_head"};
inline constexpr Names kMambaGroups{"mamba_n_groups", "n_groups", "mamba_ngroups"};
// Layers of multi-token prediction.
inline constexpr Names kDraftLayers{"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules",
                                    "mtp_num_layers", "n_predict"};
}  // namespace keys

class ConfigKeys {
 public:
  // `where` is for messages. Input error: no object. What stands in text_config or the like is read before the rest.
  ConfigKeys(const nlohmann::json& config, std::string where);

  const std::string& where() const { return where_; }
  [[noreturn]] void fail(const std::string& what) const;

  // The value of the first name that is there and not null; null: none.
  const nlohmann::json* find(const Names& names) const;
  const nlohmann::json* find(const char* name) const { return find(Names{name}); }
  double number(const Names& names, double otherwise) const;
  double number(const char* name, double otherwise) const { return number(Names{name}, otherwise); }
  double required(const Names& names) const;
  bool flag(const Names& names, bool otherwise) const;
  bool flag(const char* name, bool otherwise) const { return flag(Names{name}, otherwise); }
  std::string text(const Names& names) const;
  std::string text(const char* name) const { return text(Names{name}); }
  // The number, or of a list one by layer its `layer`th.
  double of_layer(const Names& names, std::size_t layer, double otherwise) const;
  double of_layer(const char* name, std::size_t layer, double otherwise) const {
    return of_layer(Names{name}, layer, otherwise);
  }
  std::vector<double> numbers(const char* name) const;
  std::vector<std::string> texts(const Names& names) const;
  std::optional<ConfigKeys> part(const char* name) const;

  // Keys that nothing above has asked for.
  std::vector<std::string> not_asked() const;

 private:
  double checked(const char* name, const nlohmann::json& value) const;

  nlohmann::json json_;
  std::string where_;
  mutable std::set<std::string> asked_;
};

}  // namespace draftproof
