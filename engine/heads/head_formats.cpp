#include "engine/heads/head_formats.hpp"

#include <algorithm>

namespace draftproof {
namespace {

// Read by describe_config(), or here of every config.
constexpr std::string_view kLayerKeys =
    " model_type num_hidden_layers hidden_size intermediate_size num_attention_heads num_key_value_heads "
    "max_position_embeddings head_dim rms_norm_eps rope_theta rope_parameters rope_scaling tie_word_embeddings "
    "hidden_act use_sliding_window sliding_window vocab_size layer_types attention_bias partial_rotary_factor "
    "logit_scale qk_norm use_qk_norm ";

// Keys of training, of generation and of the library that wrote the file.
constexpr std::string_view kHarmlessKeys =
    " _attn_implementation _name_or_path architectures attention_dropout attn_implementation auto_map "
    "base_model_ep_plan base_model_name_or_path begin_suppress_tokens bos_token_id chunk_size_feed_forward "
    "confidence_head_alpha decoder_start_token_id diversity_penalty draft_num_hidden_layers dtype early_stopping "
    "embed_requires_grad encoder_no_repeat_ngram_size eos_token_id hidden_dropout id2label initializer_range "
    "label2id length_penalty max_length max_window_layers min_length name_or_path no_repeat_ngram_size "
    "num_anchors num_beam_groups num_beams num_return_sequences output_attentions output_hidden_states "
    "pad_token_id pretraining_tp repetition_penalty return_dict return_dict_in_generate "
    "sliding_window_non_causal speculators_version step_loss_decay target_model_name_or_path temperature "
    "tie_encoder_decoder tokenizer_class top_k top_p torch_dtype transformers_version ttt_length typical_p "
    "unk_token_id use_cache version ";

// Keys of routers and experts: read by describe_config(), of training, or of which layers have experts, which the
// tensors say.
constexpr std::string_view kExpertKeys =
    " aux_loss_alpha decoder_sparse_step ep_size first_k_dense_replace interleave_moe_layer_step mlp_only_layers "
    "moe_intermediate_size moe_layer_freq n_group n_routed_experts n_shared_experts norm_topk_prob num_experts "
    "num_local_experts "
    "num_experts_per_tok output_router_logits routed_scaling_factor router_aux_loss_coef router_jitter_noise "
    "scoring_func seq_aux "
    "shared_expert_intermediate_size topk_group topk_method ";

constexpr std::string_view kSpeculatorsKeys =
    " speculators_model_type speculators_config transformer_layer_config draft_vocab_size target_hidden_size ";
constexpr std::string_view kEagle3Keys =
    " draft_vocab_size target_hidden_size norm_before_residual norm_before_fc fc_norm norm_output "
    "eagle_aux_hidden_state_layer_ids ";
constexpr std::string_view kBlockKeys = " block_size mask_token_id ";
constexpr std::string_view kMarkovKeys =
    " markov_rank markov_head_type enable_confidence_head confidence_head_with_markov ";
constexpr std::string_view kSelectorKeys = " conv_kernel_size conv_group_size selector_rank selector_top_k ";
constexpr std::string_view kMtpKeys = " num_nextn_predict_layers mtp_num_hidden_layers ";
constexpr const char* kAuxiliaryIds = "eagle_aux_hidden_state_layer_ids";

// Names that begin with a point stand behind the first layer's.
const HeadNames kEagle3Names{.first_layer = "layers.0",  // EAGLE and SpecForge: midlayer
                             .later_layers = "layers.",
                             .embedding = "embed_tokens.weight",
                             .head = "lm_head.weight",
                             .embed_norm = ".input_layernorm.weight",
                             .hidden_norm = ".hidden_norm.weight",
                             .out_norm = "norm.weight",
                             .fuse = "fc.weight",
                             .fuse_bias = "fc.bias"};
const HeadNames kPEagleNames = [] {
  HeadNames names = kEagle3Names;
  names.mask_hidden = "mask_hidden";
  return names;
}();
const HeadNames kBlockNames{.first_layer = "layers.0",
                            .later_layers = "layers.",
                            .embedding = "embed_tokens.weight",
                            .head = "lm_head.weight",
                            .hidden_norm = "hidden_norm.weight",
                            .out_norm = "norm.weight",
                            .fuse = "fc.weight"};
const HeadNames kEagle1Names{.first_layer = "layers.0",
                             .later_layers = "layers.",
                             .embedding = "embed_tokens.weight",
                             .head = "lm_head.weight",
                             .fuse = "fc.weight",
                             .fuse_bias = "fc.bias"};
const HeadNames kSpeculatorsEagle1Names{.first_layer = "transformer",
                                        .embedding = "embed_tokens.weight",
                                        .head = "lm_head.weight",
                                        .fuse = "fusion_fc.weight",
                                        .fuse_bias = "fusion_fc.bias"};
const HeadNames kSpeculatorsMtpNames{.first_layer = "mtp_layers.0",
                                     .embedding = "embed_tokens.weight",
                                     .head = "lm_head.weight",
                                     .embed_norm = ".token_layernorm.weight",
                                     .hidden_norm = ".hidden_layernorm.weight",
                                     .out_norm = ".final_layernorm.weight",
                                     .fuse = ".input_proj.weight"};
const HeadNames kDeepSeekNames{.first_layer = "model.layers.L",  // L: the number of the target's layers
                               .embedding = ".embed_tokens.weight",
                               .head = ".shared_head.head.weight",
                               .embed_norm = ".enorm.weight",
                               .hidden_norm = ".hnorm.weight",
                               .out_norm = ".shared_head.norm.weight",
                               .fuse = ".eh_proj.weight"};
const HeadNames kQwenNames{.first_layer = "mtp.layers.0",
                           .embedding = "model.embed_tokens.weight",
                           .head = "lm_head.weight",
                           .embed_norm = "mtp.pre_fc_norm_embedding.weight",
                           .hidden_norm = "mtp.pre_fc_norm_hidden.weight",
                           .out_norm = "mtp.norm.weight",
                           .fuse = "mtp.fc.weight"};

const HeadFormat kFormats[] = {
    {.name = "speculators",
     .type = "eagle3",
     .family = HeadFamily::eagle3,
     .names = kEagle3Names,
     .keys = {kSpeculatorsKeys, kEagle3Keys},
     .layer_ids = kAuxiliaryIds,
     .has_first_norm = false},
    {.name = "speculators",
     .type = "peagle",
     .family = HeadFamily::peagle,
     .names = kPEagleNames,
     .keys = {kSpeculatorsKeys, kEagle3Keys, " mask_token_id "},
     .layer_ids = kAuxiliaryIds,
     .has_first_norm = false},
    {.name = "speculators",
     .type = "dflash",
     .family = HeadFamily::dflash,
     .names = kBlockNames,
     .keys = {kSpeculatorsKeys, kBlockKeys, " aux_hidden_state_layer_ids sample_from_anchor "},
     .layer_ids = "aux_hidden_state_layer_ids",
     .needs_layer_ids = true},
    {.name = "speculators",
     .type = "dflash2",
     .family = HeadFamily::dflash,
     .names = kBlockNames,
     .keys = {kSpeculatorsKeys, kBlockKeys, " aux_hidden_state_layer_ids sample_from_anchor ", kSelectorKeys},
     .layer_ids = "aux_hidden_state_layer_ids",
     .needs_layer_ids = true},
    {.name = "speculators",
     .type = "dspark",
     .family = HeadFamily::dflash,
     .names = kBlockNames,
     .keys = {kSpeculatorsKeys, kBlockKeys, " aux_hidden_state_layer_ids sample_from_anchor ", kMarkovKeys},
     .layer_ids = "aux_hidden_state_layer_ids",
     .needs_layer_ids = true,
     .from_anchor = true},
    {.name = "speculators",
     .type = "mtp",
     .family = HeadFamily::mtp,
     .names = kSpeculatorsMtpNames,
     .keys = {kSpeculatorsKeys, " num_nextn_predict_layers "},
     .norm_output = true},
    {.name = "speculators",
     .type = "eagle",
     .family = HeadFamily::eagle1,
     .names = kSpeculatorsEagle1Names,
     .keys = {kSpeculatorsKeys, " fusion_bias layernorms "},
     .has_first_norm = false},
    {.name = "EAGLE",
     .type = "eagle3",
     .family = HeadFamily::eagle3,
     .names = kEagle3Names,
     .keys = {kEagle3Keys, " eagle_config "},
     .layer_ids = kAuxiliaryIds,
     .has_first_norm = false},
    {.name = "EAGLE",
     .type = "eagle1",
     .family = HeadFamily::eagle1,
     .names = kEagle1Names,
     .keys = {" bias add_para_norm "},
     .has_first_norm = false},
    {.name = "DFlash",
     .type = "dflash",
     .family = HeadFamily::dflash,
     .names = kBlockNames,
     .keys = {" dflash_config block_size num_target_layers target_hidden_size "},
     .inside = {kBlockKeys, " target_layer_ids "},
     .layer_ids = "target_layer_ids",
     .ids_below = 1},
    {.name = "DFlash",
     .type = "dflash2",
     .family = HeadFamily::dflash,
     .names = kBlockNames,
     .keys = {" dflash_config block_size num_target_layers target_hidden_size ", kSelectorKeys},
     .inside = {kBlockKeys, " target_layer_ids ", kSelectorKeys},
     .layer_ids = "target_layer_ids",
     .ids_below = 1},
    {.name = "DFlash",
     .type = "dspark",
     .family = HeadFamily::dflash,
     .names = kBlockNames,
     .keys = {" dflash_config block_size num_target_layers target_hidden_size "},
     .inside = {kBlockKeys, " target_layer_ids ", kMarkovKeys},
     .layer_ids = "target_layer_ids",
     .ids_below = 1,
     .from_anchor = true},
    {.name = "DeepSpec",
     .type = "eagle3",
     .family = HeadFamily::eagle3,
     .names = kEagle3Names,
     .keys = {" target_layer_ids num_target_layers "},
     .layer_ids = "target_layer_ids",
     .ids_below = 1,
     .needs_layer_ids = true,
     .has_first_norm = false},
    {.name = "DeepSpec",
     .type = "dspark",
     .family = HeadFamily::dflash,
     .names = kBlockNames,
     .keys = {" target_layer_ids num_target_layers ", kBlockKeys, kMarkovKeys},
     .layer_ids = "target_layer_ids",
     .ids_below = 1,
     .needs_layer_ids = true,
     .from_anchor = true},
    {.name = "MTP", .type = "deepseek", .family = HeadFamily::mtp, .names = kDeepSeekNames, .keys = {kMtpKeys}},
    {.name = "MTP",
     .type = "qwen",
     .family = HeadFamily::mtp,
     .names = kQwenNames,
     .keys = {kMtpKeys},
     .norm_output = true},
};

}  // namespace

bool is_key_of(const HeadKeys& keys, std::string_view key) {
  return std::ranges::any_of(keys, [&](std::string_view list) { return is_word_of(list, key); });
}

const HeadFormat* find_format(std::string_view name, std::string_view type) {
  const auto* const found = std::ranges::find_if(
      kFormats, [&](const HeadFormat& format) { return format.name == name && format.type == type; });
  return found == std::end(kFormats) ? nullptr : found;
}

bool is_key_of_every_format(std::string_view key) {
  return is_word_of(kLayerKeys, key) || is_word_of(kHarmlessKeys, key) || is_word_of(kExpertKeys, key);
}

}  // namespace draftproof
