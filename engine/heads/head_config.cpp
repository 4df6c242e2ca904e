#include "engine/heads/head_config.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

using Keys = std::vector<std::string_view>;

// Read by describe_config(), or here of every config.
constexpr std::string_view kLayerKeys =
    " model_type num_hidden_layers hidden_size intermediate_size num_attention_heads num_key_value_heads "
    "max_position_embeddings head_dim rms_norm_eps rope_theta rope_parameters rope_scaling tie_word_embeddings "
    "hidden_act use_sliding_window sliding_window vocab_size layer_types attention_bias partial_rotary_factor "
    "logit_scale qk_norm ";

// Of training, of generation and of the library that wrote the file.
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

bool may_change_arithmetic(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0.0;
  return value.is_structured() && !value.empty();
}

void refuse_unknown_keys(const JsonFields& config, const Keys& read) {
  for (const auto& [key, value] : config.json().items())
    if (!is_word_of(kLayerKeys, key) && !is_word_of(kHarmlessKeys, key) &&
        std::find(read.begin(), read.end(), key) == read.end() && may_change_arithmetic(value))
      throw input_error(config.where(), in_quotes(key) + " is " + printable_line(value.dump()).substr(0, 60) +
                                            ", which may change the arithmetic and is not implemented; expected a "
                                            "head without it");
}

[[noreturn]] void refuse(const JsonFields& config, const std::string& what) {
  throw input_error(config.where(), what);
}

std::string architecture_of(const JsonFields& config) {
  const auto names = config.strings("architectures");
  return names && !names->empty() ? names->front() : std::string();
}

std::int64_t positive(const JsonFields& config, const char* key, std::int64_t value) {
  constexpr std::int64_t kMax = std::int64_t{1} << 24;
  if (value < 1 || value > kMax)
    refuse(config, in_quotes(key) + " is " + std::to_string(value) + "; expected a number from 1 to 2^24");
  return value;
}

// Missing, null and 0 are nothing.
std::int64_t size_or(const JsonFields& config, const char* key, std::int64_t otherwise) {
  const auto value = config.integer(key);
  return value && *value != 0 ? positive(config, key, *value) : otherwise;
}

std::int64_t size_of(const JsonFields& config, const char* key) {
  return positive(config, key, config.required_integer(key));
}

std::vector<std::int32_t> layers_of(const JsonFields& config, const char* key, std::int64_t offset) {
  return rising_layers(config.where(), key, config.integers(key).value_or(std::vector<std::int64_t>{}), offset);
}

void read_mask(const JsonFields& config, HeadDescription& head) {
  const std::int64_t token = config.required_integer("mask_token_id");
  if (token < 0 || token >= head.target_vocab_size)
    refuse(config, "'mask_token_id' is " + std::to_string(token) + "; expected a token below " +
                       std::to_string(head.target_vocab_size) + ", the target's vocabulary");
  head.mask_token = static_cast<Token>(token);
}

void read_block(const JsonFields& config, std::int64_t block_len, HeadDescription& head) {
  constexpr std::int64_t kMax = 1024;
  const std::int64_t least = head.from_anchor ? 1 : 2;
  if (block_len < least || block_len > kMax)
    refuse(config, "'block_size' is " + std::to_string(block_len) + "; expected " + std::to_string(least) + " to " +
                       std::to_string(kMax));
  head.block_len = static_cast<std::int32_t>(block_len);
  if (head.trained_len == 0) head.trained_len = head.block_len - (head.from_anchor ? 0 : 1);
}

// Everything that a config of layers says.
void read_layers(const JsonFields& config, const TensorCollector& tensors, HeadConfig& head) {
  ModelDescription& shape = head.description.shape;
  shape = describe_config(config);
  const HeadNames& names = head.names;
  shape.has_qkv_bias = config.boolean("attention_bias").value_or(false) || shape.architecture == "qwen2" ||
                       tensors.contains(names.first_layer + names.of_layer->query_bias);
  shape.has_qk_norm = config.boolean("qk_norm").value_or(false) || shape.architecture == "qwen3" ||
                      tensors.contains(names.first_layer + names.of_layer->query_norm);
  for (const std::string& type : config.strings("layer_types").value_or(std::vector<std::string>{}))
    if (type != "full_attention")
      refuse(config, "'layer_types' has " + in_quotes(type) + "; expected full_attention for every layer");
  if (const double scale = config.number("logit_scale").value_or(1.0); scale != 1.0)
    refuse(config, "'logit_scale' is " + number("%g", scale) + "; expected 1, logits as they are");
  head.description.target_vocab_size = size_of(config, "vocab_size");
}

void set_widths(const JsonFields& config, HeadConfig& head) {
  head.description.target_width = size_or(config, "target_hidden_size", head.description.shape.width);
}

// --- names ------------------------------------------------------------------------------------------------------------

void name_eagle3(const JsonFields& config, const TensorCollector& tensors, HeadNames& names) {
  // The first spelling is EAGLE's and SpecForge's, the second vLLM's.
  names.first_layer = tensors.contains("midlayer.self_attn.q_proj.weight") ? "midlayer" : "layers.0";
  names.later_layers = "layers.";
  names.embedding = "embed_tokens.weight";
  names.embed_norm = names.first_layer + ".input_layernorm.weight";
  names.hidden_norm = names.first_layer + ".hidden_norm.weight";
  names.fuse = "fc.weight";
  names.fuse_bias = "fc.bias";
  names.out_norm = "norm.weight";
  names.head = "lm_head.weight";
  const bool before_fc = config.boolean("norm_before_fc").value_or(false);
  const bool each = config.boolean("fc_norm").value_or(false);
  if (before_fc && each) refuse(config, "'norm_before_fc' and 'fc_norm' are both true; expected one of them");
  if (before_fc) names.fuse_norm = "input_norm.weight";
  if (each) names.feature_norms = "fc_norm.";
}

void name_dflash(HeadNames& names) {
  names.first_layer = "layers.0";
  names.later_layers = "layers.";
  names.embedding = "embed_tokens.weight";
  names.hidden_norm = "hidden_norm.weight";
  names.fuse = "fc.weight";
  names.out_norm = "norm.weight";
  names.head = "lm_head.weight";
}

const Keys kMarkovKeys{"markov_rank", "markov_head_type", "enable_confidence_head", "confidence_head_with_markov"};

// Of DSpark. What the config leaves out is `by_default`: of speculators, a Markov head of rank 256 and a confidence head
// that reads it.
void read_markov(const JsonFields& config, bool by_default, HeadConfig& head) {
  const std::int64_t rank = config.integer("markov_rank").value_or(by_default ? 256 : 0);
  if (rank != 0) head.markov_rank = positive(config, "markov_rank", rank);
  if (const std::string type = config.string("markov_head_type").value_or("vanilla"); rank != 0 && type != "vanilla")
    refuse(config, "'markov_head_type' is " + in_quotes(type) + "; expected vanilla");
  if (rank != 0) {
    head.names.markov_in = "markov_head.markov_w1.weight";
    head.names.markov_out = "markov_head.markov_w2.weight";
  }
  if (!config.boolean("enable_confidence_head").value_or(by_default)) return;
  head.confidence_reads_markov = config.boolean("confidence_head_with_markov").value_or(by_default);
  if (head.confidence_reads_markov && rank == 0)
    refuse(config, "'confidence_head_with_markov' is true and 'markov_rank' 0; expected a rank from 1 on");
  head.names.confidence = "confidence_head.proj.weight";
  head.names.confidence_bias = "confidence_head.proj.bias";
}

Keys operator+(Keys a, const Keys& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// --- vLLM's speculators -------------------------------------------------------------------------------------------------

void read_proposal(const JsonFields& config, HeadDescription& head) {
  const std::optional<JsonFields> proposals = config.object("speculators_config");
  if (!proposals) return;
  const std::vector<JsonFields> methods = proposals->objects("proposal_methods");
  if (methods.empty()) return;
  const std::string wanted =
      proposals->string("default_proposal_method").value_or(methods.front().required_string("proposal_type"));
  for (const JsonFields& method : methods) {
    if (method.required_string("proposal_type") != wanted) continue;
    for (const auto& [key, value] : method.json().items())
      if (!is_word_of(" proposal_type speculative_tokens verifier_accept_k accept_tolerance ", key) &&
          may_change_arithmetic(value))
        refuse(method,
               in_quotes(key) + " may change what is accepted and is not implemented; expected a method without it");
    head.trained_len = static_cast<std::int32_t>(size_or(method, "speculative_tokens", 0));
    head.verifier_accept_k = positive(method, "verifier_accept_k", method.integer("verifier_accept_k").value_or(1));
    head.accept_tolerance = method.number("accept_tolerance").value_or(0.0);
    if (!(head.accept_tolerance >= 0.0) || !std::isfinite(head.accept_tolerance))
      refuse(method, "'accept_tolerance' is " + number("%g", head.accept_tolerance) + "; expected a number from 0 on");
    return;
  }
  refuse(*proposals, "'default_proposal_method' is " + in_quotes(wanted) + ", and no proposal method is of that type");
}

HeadConfig read_speculators(const JsonFields& config, const TensorCollector& tensors) {
  HeadConfig head;
  HeadDescription& d = head.description;
  HeadNames& names = head.names;
  d.format = "speculators";
  const std::string type = config.required_string("speculators_model_type");
  const std::optional<JsonFields> layers = config.object("transformer_layer_config");
  if (!layers) config.fail("transformer_layer_config", "an object");
  refuse_unknown_keys(*layers, {});
  read_proposal(config, d);
  Keys read{"speculators_model_type", "speculators_config", "transformer_layer_config", "draft_vocab_size",
            "target_hidden_size"};
  if (type == "eagle3") {
    d.family = HeadFamily::eagle3;
    name_eagle3(config, tensors, names);
    // speculators takes a missing key for false and vLLM for true.
    if (!config.boolean("norm_before_residual")) config.fail("norm_before_residual", "true or false");
    d.norm_before_residual = *config.boolean("norm_before_residual");
    d.norm_output = config.boolean("norm_output").value_or(false);
    d.feature_layers = layers_of(config, "eagle_aux_hidden_state_layer_ids", 0);
    head.num_features = d.feature_layers.empty() ? 3 : std::ssize(d.feature_layers);
    head.has_first_norm = false;
    read = read +
           Keys{"norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "eagle_aux_hidden_state_layer_ids"};
  } else if (type == "dflash" || type == "dspark") {
    d.family = HeadFamily::dflash;
    name_dflash(names);
    d.feature_layers = layers_of(config, "aux_hidden_state_layer_ids", 0);
    if (d.feature_layers.empty()) config.fail("aux_hidden_state_layer_ids", "a list of layers");
    head.num_features = std::ssize(d.feature_layers);
    d.from_anchor = config.boolean("sample_from_anchor").value_or(type == "dspark");
    read = read + Keys{"aux_hidden_state_layer_ids", "sample_from_anchor", "block_size", "mask_token_id"};
    if (type == "dspark") {
      read_markov(config, true, head);
      read = read + kMarkovKeys;
    }
  } else if (type == "mtp") {
    d.family = HeadFamily::mtp;
    names.first_layer = "mtp_layers.0";
    names.embed_norm = "mtp_layers.0.token_layernorm.weight";
    names.hidden_norm = "mtp_layers.0.hidden_layernorm.weight";
    names.fuse = "mtp_layers.0.input_proj.weight";
    names.out_norm = "mtp_layers.0.final_layernorm.weight";
    names.embedding = "embed_tokens.weight";
    names.head = "lm_head.weight";
    d.norm_output = true;
    if (const std::int64_t count = size_or(config, "num_nextn_predict_layers", 1); count != 1)
      refuse(config, "'num_nextn_predict_layers' is " + std::to_string(count) + "; expected 1");
    read.push_back("num_nextn_predict_layers");
  } else if (type == "eagle") {
    d.family = HeadFamily::eagle1;
    names.first_layer = "transformer";
    names.embedding = "embed_tokens.weight";
    names.head = "lm_head.weight";
    names.fuse = "fusion_fc.weight";
    names.fuse_bias = "fusion_fc.bias";
    head.has_fuse_bias = config.boolean("fusion_bias").value_or(false);
    head.has_first_norm = config.boolean("layernorms").value_or(false);
    if (head.has_first_norm) {
      names.embed_norm = "embedding_layernorm.weight";
      names.out_norm = "pre_lm_head_layernorm.weight";
    }
    read = read + Keys{"fusion_bias", "layernorms"};
  } else if (type == "peagle") {
    refuse(config,
           "'speculators_model_type' is 'peagle', and P-EAGLE is not implemented; expected eagle3, dflash, "
           "dspark, mtp or eagle");
  } else {
    const std::vector<std::string> known{"eagle3", "dflash", "dspark", "mtp", "eagle"};
    refuse(config, "'speculators_model_type' is " + in_quotes(type) +
                       "; expected eagle3, dflash, dspark, mtp or eagle" + did_you_mean(type, known));
  }
  refuse_unknown_keys(config, read);
  read_layers(*layers, tensors, head);
  set_widths(config, head);
  if (d.family == HeadFamily::mtp) {
    d.target_layers = d.shape.num_layers;  // the layers described are the target's
    d.shape.num_layers = 1;
  }
  head.draft_vocab_size = size_or(config, "draft_vocab_size", d.target_vocab_size);
  if (d.family == HeadFamily::dflash) {
    read_mask(config, d);
    read_block(config, config.integer("block_size").value_or(8), d);
  }
  return head;
}

// --- EAGLE's own, and SpecForge's -----------------------------------------------------------------------------------------

HeadConfig read_eagle3(const JsonFields& config, const TensorCollector& tensors) {
  HeadConfig head;
  HeadDescription& d = head.description;
  d.family = HeadFamily::eagle3;
  d.format = "EAGLE";
  name_eagle3(config, tensors, head.names);
  d.norm_before_residual = config.boolean("norm_before_residual").value_or(false);
  d.norm_output = config.boolean("norm_output").value_or(false);
  head.has_first_norm = false;
  refuse_unknown_keys(config, {"draft_vocab_size", "target_hidden_size", "norm_before_residual", "norm_before_fc",
                               "fc_norm", "norm_output", "eagle_config", "eagle_aux_hidden_state_layer_ids"});
  std::vector<std::int64_t> ids =
      config.integers("eagle_aux_hidden_state_layer_ids").value_or(std::vector<std::int64_t>{});
  if (const std::optional<JsonFields> eagle = config.object("eagle_config")) {
    refuse_unknown_keys(*eagle, {"eagle_aux_hidden_state_layer_ids", "use_aux_hidden_state"});
    if (!eagle->boolean("use_aux_hidden_state").value_or(true))
      refuse(*eagle, "'use_aux_hidden_state' is false; expected a head that reads several layers");
    const auto inside = eagle->integers("eagle_aux_hidden_state_layer_ids");
    if (inside && !ids.empty() && *inside != ids)
      refuse(config, "'eagle_aux_hidden_state_layer_ids' is not that in 'eagle_config'; expected one list");
    if (inside) ids = *inside;
  }
  d.feature_layers =
      rising_layers(config.where(), "eagle_aux_hidden_state_layer_ids", ids, !ids.empty() && ids.front() == 1 ? 1 : 0);
  head.num_features = ids.empty() ? 3 : std::ssize(ids);
  read_layers(config, tensors, head);
  set_widths(config, head);
  head.draft_vocab_size = size_or(config, "draft_vocab_size", d.target_vocab_size);
  return head;
}

HeadConfig read_eagle1(const JsonFields& config, const TensorCollector& tensors) {
  HeadConfig head;
  HeadDescription& d = head.description;
  HeadNames& names = head.names;
  d.family = HeadFamily::eagle1;
  d.format = "EAGLE";
  names.first_layer = "layers.0";
  names.later_layers = "layers.";
  names.embedding = "embed_tokens.weight";
  names.head = "lm_head.weight";
  names.fuse = "fc.weight";
  names.fuse_bias = "fc.bias";
  head.has_first_norm = false;
  head.has_fuse_bias = config.boolean("bias");
  if (config.boolean("add_para_norm").value_or(false)) {  // of HASS
    names.embed_norm = "embed_layernorm.weight";
    names.hidden_norm = "hidden_states_layernorm.weight";
  }
  refuse_unknown_keys(config, {"bias", "add_para_norm"});
  read_layers(config, tensors, head);
  set_widths(config, head);
  head.draft_vocab_size = d.target_vocab_size;
  return head;
}

// --- DFlash, DSpark and DeepSpec ------------------------------------------------------------------------------------------

// z-lab's ids count outputs from 0; hidden_states[L] of the library behind them is the normed state, unlike the others.
void read_target_layers(const JsonFields& config, const JsonFields& block, HeadConfig& head) {
  HeadDescription& d = head.description;
  d.target_layers = size_or(config, "num_target_layers", 0);
  d.feature_layers = layers_of(block, "target_layer_ids", 1);
  head.num_features = d.feature_layers.empty() ? 0 : std::ssize(d.feature_layers);
  if (d.target_layers != 0 && head.num_features != 0 && d.feature_layers.back() >= d.target_layers)
    refuse(block, "'target_layer_ids' has " + std::to_string(d.feature_layers.back() - 1) +
                      ", and of the last layer some programs hand out the residual stream and some the normed state; "
                      "expected layers below " +
                      std::to_string(d.target_layers - 1));
}

HeadConfig read_dflash(const JsonFields& config, const TensorCollector& tensors) {
  HeadConfig head;
  HeadDescription& d = head.description;
  d.family = HeadFamily::dflash;
  d.format = "DFlash";
  name_dflash(head.names);
  const std::optional<JsonFields> block = config.object("dflash_config");
  if (!block) config.fail("dflash_config", "an object");
  const std::string projector = block->string("projector_type").value_or("dflash");
  if (projector != "dflash" && projector != "dspark")
    refuse(*block, "'projector_type' is " + in_quotes(projector) + "; expected dflash or dspark");
  if (const std::string mode = block->string("attention_mode").value_or("gqa"); mode != "gqa")
    refuse(*block, "'attention_mode' is " + in_quotes(mode) + "; expected gqa");
  const bool is_dspark = projector == "dspark" || architecture_of(config) == "DSparkDraftModel";
  d.from_anchor = is_dspark;
  Keys inside{"mask_token_id", "target_layer_ids", "block_size"};
  if (is_dspark) {
    read_markov(*block, false, head);
    inside = inside + kMarkovKeys;
  }
  refuse_unknown_keys(*block, inside);
  refuse_unknown_keys(config, {"dflash_config", "block_size", "num_target_layers", "target_hidden_size"});
  read_layers(config, tensors, head);
  set_widths(config, head);
  read_target_layers(config, *block, head);
  if (head.num_features == 0) head.num_features = d.shape.num_layers;  // as many as the family's rule gives
  head.draft_vocab_size = d.target_vocab_size;
  read_mask(*block, d);
  const std::optional<std::int64_t> outside = config.integer("block_size");
  if (const auto len = block->integer("block_size"); outside && len && *outside != *len)
    refuse(config, "'block_size' is " + std::to_string(*outside) + ", and " + std::to_string(*len) +
                       " in 'dflash_config'; expected one length");
  read_block(config, outside ? *outside : block->required_integer("block_size"), d);
  return head;
}

HeadConfig read_deepspec(const JsonFields& config, const TensorCollector& tensors, bool is_eagle3) {
  HeadConfig head;
  HeadDescription& d = head.description;
  d.family = is_eagle3 ? HeadFamily::eagle3 : HeadFamily::dflash;
  Keys read{"target_layer_ids", "num_target_layers"};
  if (is_eagle3) {
    name_eagle3(config, tensors, head.names);
    head.has_first_norm = false;
    d.trained_len = static_cast<std::int32_t>(size_or(config, "ttt_length", 0));
  } else {
    name_dflash(head.names);
    d.from_anchor = true;
    read_markov(config, false, head);
    read = read + kMarkovKeys + Keys{"block_size", "mask_token_id"};
  }
  d.format = "DeepSpec";
  refuse_unknown_keys(config, read);
  read_layers(config, tensors, head);
  set_widths(config, head);
  read_target_layers(config, config, head);
  if (head.num_features == 0) config.fail("target_layer_ids", "a list of layers");
  head.draft_vocab_size = d.target_vocab_size;
  if (is_eagle3 && d.shape.num_layers != 1)
    refuse(config, "'num_hidden_layers' is " + std::to_string(d.shape.num_layers) + "; expected 1");
  if (!is_eagle3) {
    read_mask(config, d);
    read_block(config, size_of(config, "block_size"), d);
  }
  return head;
}

// --- Medusa ---------------------------------------------------------------------------------------------------------------

HeadConfig read_medusa(const JsonFields& config, const TensorCollector& tensors) {
  HeadConfig head;
  HeadDescription& d = head.description;
  MedusaNames& medusa = head.medusa;
  d.family = HeadFamily::medusa;
  d.format = "Medusa";
  medusa.is_vllm = !tensors.contains("0.0.linear.weight");
  medusa.prefix = tensors.contains("medusa_heads.blocks.0.layers.0.weight") ? "medusa_heads." : "";
  refuse_unknown_keys(config, {"num_heads", "medusa_num_heads", "medusa_num_layers", "truncated_vocab_size",
                               "original_lm_head", "medusa_fc_bias", "logit_scale"});
  if (const double scale = config.number("logit_scale").value_or(1.0); scale != 1.0)
    refuse(config, "'logit_scale' is " + number("%g", scale) + "; expected 1, logits as they are");
  if (medusa.is_vllm) {
    medusa.heads = size_of(config, "num_heads");
    medusa.blocks = size_of(config, "num_hidden_layers");
    medusa.has_bias = config.boolean("medusa_fc_bias").value_or(false);
    medusa.shares_head = config.boolean("original_lm_head").value_or(false);
  } else {
    medusa.heads = size_of(config, "medusa_num_heads");
    medusa.blocks = size_or(config, "medusa_num_layers", 1);
    medusa.has_bias = tensors.contains("0.0.linear.bias");
  }
  const std::string first = medusa.is_vllm ? medusa.prefix + "blocks.0.layers.0.weight" : "0.0.linear.weight";
  const std::vector<std::int64_t>& block = tensors.shape_of(first);
  d.shape.architecture = "medusa";
  d.shape.width = size_or(config, "hidden_size", block.back());
  d.shape.rope_base = 10000;  // rotates nothing
  d.target_width = d.shape.width;
  d.target_vocab_size = size_or(config, "vocab_size", 0);
  d.trained_len = static_cast<std::int32_t>(medusa.heads);
  head.draft_vocab_size = size_or(config, "truncated_vocab_size", d.target_vocab_size);
  head.draft_tokens_are_ids = true;
  return head;
}

// --- MTP --------------------------------------------------------------------------------------------------------------------

// The number in "model.layers.N.eh_proj.weight"; nothing where there is no such tensor.
std::optional<std::string> layer_of_deepseek(const TensorCollector& tensors) {
  constexpr std::string_view kPrefix = "model.layers.";
  constexpr std::string_view kSuffix = ".eh_proj.weight";
  std::optional<std::string> layer;
  for (const std::string& name : tensors.names()) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    if (layer)
      throw input_error(tensors.where(name), "is of a second MTP layer; expected one, which drafts every token");
    layer = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  }
  return layer;
}

HeadConfig read_mtp(const JsonFields& config, const TensorCollector& tensors) {
  HeadConfig head;
  HeadDescription& d = head.description;
  HeadNames& names = head.names;
  d.family = HeadFamily::mtp;
  d.format = "MTP";
  for (const char* const key : {"num_nextn_predict_layers", "mtp_num_hidden_layers"})
    if (const std::int64_t count = size_or(config, key, 1); count != 1)
      refuse(config, in_quotes(key) + " is " + std::to_string(count) + "; expected 1");
  std::int64_t index = -1;
  if (const std::optional<std::string> layer = layer_of_deepseek(tensors)) {
    names.first_layer = "model.layers." + *layer;
    names.fuse = names.first_layer + ".eh_proj.weight";
    names.embed_norm = names.first_layer + ".enorm.weight";
    names.hidden_norm = names.first_layer + ".hnorm.weight";
    names.out_norm = names.first_layer + ".shared_head.norm.weight";
    names.head = names.first_layer + ".shared_head.head.weight";
    names.embedding = names.first_layer + ".embed_tokens.weight";
    d.zero_first_embedding = true;
    if (layer->size() > 6 || layer->empty() || layer->find_first_not_of("0123456789") != std::string::npos)
      throw input_error(tensors.where(names.fuse), "has no number of a layer; expected model.layers.L.eh_proj.weight");
    index = std::stoll(*layer);
  } else {
    names.first_layer = "mtp.layers.0";
    names.fuse = "mtp.fc.weight";
    names.embed_norm = "mtp.pre_fc_norm_embedding.weight";
    names.hidden_norm = "mtp.pre_fc_norm_hidden.weight";
    names.out_norm = "mtp.norm.weight";
    names.head = "lm_head.weight";
    names.embedding = "model.embed_tokens.weight";
    d.norm_output = true;
  }
  refuse_unknown_keys(config, {"num_nextn_predict_layers", "mtp_num_hidden_layers"});
  read_layers(config, tensors, head);
  set_widths(config, head);
  // A companion of the target has the target's config, and its layer is numbered behind the target's.
  if (index < 0 || index == d.shape.num_layers) d.target_layers = d.shape.num_layers;
  if (index > 0 && d.target_layers == 0)
    throw input_error(tensors.where(names.fuse), "is of layer " + std::to_string(index) + "; expected " +
                                                     std::to_string(d.shape.num_layers) +
                                                     ", which stands behind the target's 'num_hidden_layers'");
  d.shape.num_layers = 1;
  head.draft_vocab_size = d.target_vocab_size;
  return head;
}

enum class ConfigFormat : std::uint8_t {
  speculators,
  dflash,
  deepspec_eagle3,
  deepspec_block,
  medusa,
  eagle3,
  unknown
};

ConfigFormat format_of(const JsonFields& config) {
  const std::string architecture = architecture_of(config);
  const auto any = [&](std::initializer_list<const char*> keys) {
    return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return config.find(key) != nullptr; });
  };
  if (any({"speculators_model_type", "speculators_config"})) return ConfigFormat::speculators;
  if (architecture == "Qwen3Eagle3Model") return ConfigFormat::deepspec_eagle3;
  if (architecture == "Qwen3DSparkModel") return ConfigFormat::deepspec_block;
  if (any({"dflash_config"}) || architecture == "DFlashDraftModel" || architecture == "DSparkDraftModel")
    return ConfigFormat::dflash;
  if (any({"medusa_num_heads"}) || architecture == "MedusaModel" ||
      config.string("model_type").value_or("") == "medusa")
    return ConfigFormat::medusa;
  if (any({"draft_vocab_size"}) || architecture.find("Eagle3") != std::string::npos) return ConfigFormat::eagle3;
  return ConfigFormat::unknown;
}

}  // namespace

bool is_word_of(std::string_view list, std::string_view key) {
  return key.find(' ') == key.npos && list.find(" " + std::string(key) + " ") != std::string_view::npos;
}

std::vector<std::int32_t> rising_layers(const std::string& where, const std::string& key,
                                        const std::vector<std::int64_t>& ids, std::int64_t offset) {
  std::vector<std::int32_t> layers;
  std::int64_t before = 0;
  for (const std::int64_t id : ids) {
    if (id > (std::int64_t{1} << 20) || id + offset <= before)
      throw input_error(where, in_quotes(key) + " has " + std::to_string(id) + (before == 0 ? "" : " after ") +
                                   (before == 0 ? "" : std::to_string(before - offset)) +
                                   "; expected layers that rise, from " + std::to_string(1 - offset) + " on");
    before = id + offset;
    layers.push_back(static_cast<std::int32_t>(before));
  }
  return layers;
}

void refuse_other_kinds(const TensorCollector& tensors) {
  struct Kind {
    std::string_view part, what;
  };
  constexpr Kind kKinds[] = {{"attention_conv", "DFlash 2's convolutions"},
                             {"mlp_conv", "DFlash 2's convolutions"},
                             {"attn_conv_", "DFlash 2's convolutions"},
                             {"ffn_conv_", "DFlash 2's convolutions"},
                             {"candidate_selector", "DFlash 2's selector"},
                             {"selector_", "DFlash 2's selector"},
                             {"mask_hidden", "P-EAGLE"},
                             {"hydra_", "Hydra"}};
  for (const std::string& name : tensors.names())
    for (const Kind& kind : kKinds)
      if (name.find(kind.part) != std::string::npos)
        throw input_error(tensors.where(name), "belongs to " + std::string(kind.what) + ", which is not implemented");
}

bool describes_head(const JsonFields& config) {
  return format_of(config) != ConfigFormat::unknown || config.integer("num_nextn_predict_layers").value_or(0) > 0;
}

bool describes_head(const TensorCollector& tensors) {
  for (const char* const name : {"fc.weight", "mtp.fc.weight", "0.0.linear.weight", "blocks.0.layers.0.weight"})
    if (tensors.contains(name)) return true;
  return layer_of_deepseek(tensors).has_value();
}

HeadConfig read_head_config(const JsonFields& config, const TensorCollector& tensors) {
  refuse_other_kinds(tensors);
  const auto read = [&] {
    switch (format_of(config)) {
      case ConfigFormat::speculators:
        return read_speculators(config, tensors);
      case ConfigFormat::dflash:
        return read_dflash(config, tensors);
      case ConfigFormat::deepspec_eagle3:
        return read_deepspec(config, tensors, true);
      case ConfigFormat::deepspec_block:
        return read_deepspec(config, tensors, false);
      case ConfigFormat::medusa:
        return read_medusa(config, tensors);
      case ConfigFormat::eagle3:
        return read_eagle3(config, tensors);
      case ConfigFormat::unknown:
        break;
    }
    if (tensors.contains("mtp.fc.weight") || layer_of_deepseek(tensors)) return read_mtp(config, tensors);
    if (tensors.contains("fc.weight")) return read_eagle1(config, tensors);
    if (tensors.contains("0.0.linear.weight") || tensors.contains("blocks.0.layers.0.weight"))
      return read_medusa(config, tensors);
    refuse(config,
           "describes no drafting head; expected one of vLLM's speculators, EAGLE, DFlash, DeepSpec, Medusa or MTP");
  };
  HeadConfig head = read();
  head.where = config.where();
  return head;
}

}  // namespace draftproof
