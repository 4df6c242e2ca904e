#include "engine/heads/head_config.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "engine/heads/head_formats.hpp"

namespace draftproof {
namespace {

bool may_change_arithmetic(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0.0;
  return value.is_structured() && !value.empty();
}

void refuse_unknown_keys(const JsonFields& config, const HeadKeys& read) {
  for (const auto& [key, value] : config.json().items())
    if (!is_key_of_every_format(key) && !is_key_of(read, key) && may_change_arithmetic(value))
      throw input_error(config.where(), in_quotes(key) + " is " + printable_line(value.dump()).substr(0, 60) +
                                            ", which may change the arithmetic and is not implemented; expected a "
                                            "head without it");
}

[[noreturn]] void refuse(const JsonFields& config, const std::string& what) {
  throw input_error(config.where(), what);
}

[[noreturn]] void refuse_value(const JsonFields& config, const char* key, const std::string& value,
                               const std::string& expected) {
  refuse(config, in_quotes(key) + " is " + value + "; expected " + expected);
}

std::string architecture_of(const JsonFields& config) {
  const auto names = config.strings("architectures");
  return names && !names->empty() ? names->front() : std::string();
}

std::int64_t positive(const JsonFields& config, const char* key, std::int64_t value) {
  if (value < 1 || value > std::int64_t{1} << 24)
    refuse_value(config, key, std::to_string(value), "a number from 1 to 2^24");
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

JsonFields part_of(const JsonFields& config, const char* key) {
  const std::optional<JsonFields> part = config.object(key);
  if (!part) config.fail(key, "an object");
  return *part;
}

void require_text(const JsonFields& config, const char* key, std::initializer_list<std::string_view> allowed,
                  const std::string& expected) {
  const auto value = config.string(key);
  if (value && std::ranges::find(allowed, *value) == allowed.end())
    refuse_value(config, key, in_quotes(*value), expected);
}

void require_unit_scale(const JsonFields& config) {
  if (const double scale = config.number("logit_scale").value_or(1.0); scale != 1.0)
    refuse_value(config, "logit_scale", number("%g", scale), "1, logits as they are");
}

// --- parts of a config ----------------------------------------------------------------------------------------------

// The fusing, the norms and the biases that keys switch on.
void read_switches(const HeadFormat& format, const JsonFields& config, HeadConfig& head) {
  HeadNames& names = head.names;
  HeadDescription& d = head.description;
  const auto reads = [&](const char* key) { return is_key_of(format.keys, key); };
  const auto is_on = [&](const char* key) { return reads(key) && config.boolean(key).value_or(false); };
  // speculators takes a missing key for false and vLLM for true.
  if (format.name == "speculators" && reads("norm_before_residual") && !config.boolean("norm_before_residual"))
    config.fail("norm_before_residual", "true or false");
  d.norm_before_residual = is_on("norm_before_residual");
  d.norm_output = format.norm_output || is_on("norm_output");
  if (is_on("norm_before_fc") && is_on("fc_norm"))
    refuse(config, "'norm_before_fc' and 'fc_norm' are both true; expected one of them");
  if (is_on("norm_before_fc")) names.fuse_norm = "input_norm.weight";
  if (is_on("fc_norm")) names.feature_norms = "fc_norm.";
  if (reads("bias")) head.has_fuse_bias = config.boolean("bias");
  if (is_on("add_para_norm")) {  // of HASS
    names.embed_norm = "embed_layernorm.weight";
    names.hidden_norm = "hidden_states_layernorm.weight";
  }
  if (reads("fusion_bias")) head.has_fuse_bias = is_on("fusion_bias");
  head.has_first_norm = format.has_first_norm || is_on("layernorms");
  if (is_on("layernorms")) {
    names.embed_norm = "embedding_layernorm.weight";
    names.out_norm = "pre_lm_head_layernorm.weight";
  }
  d.from_anchor = format.from_anchor;
  if (reads("sample_from_anchor")) d.from_anchor = config.boolean("sample_from_anchor").value_or(format.from_anchor);
  for (const char* const key : {"num_nextn_predict_layers", "mtp_num_hidden_layers"})
    if (const std::int64_t count = reads(key) ? size_or(config, key, 1) : 1; count != 1)
      refuse_value(config, key, std::to_string(count), "1");
}

// DSpark: what the config leaves out is `by_default`: of speculators, a Markov head of rank 256 and a confidence
// head that reads it.
void read_markov(const JsonFields& config, bool by_default, HeadConfig& head) {
  const std::int64_t rank = config.integer("markov_rank").value_or(by_default ? 256 : 0);
  if (rank != 0) {
    head.markov_rank = positive(config, "markov_rank", rank);
    require_text(config, "markov_head_type", {"vanilla"}, "vanilla");
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

// DFlash 2: the convolutions and the selector of candidates. What speculators' config leaves out has a default.
void read_selector(const JsonFields& config, const JsonFields& block, const TensorCollector& tensors, bool has_defaults,
                   HeadConfig& head) {
  const auto size = [&](const char* key, std::int64_t otherwise) {
    const JsonFields& of = block.find(key) != nullptr ? block : config;
    return has_defaults ? size_or(of, key, otherwise) : size_of(of, key);
  };
  HeadDescription& d = head.description;
  head.conv_taps = size("conv_kernel_size", 2);
  head.conv_group = size("conv_group_size", 16);
  head.markov_rank = size("selector_rank", 256);
  const std::int64_t top_k = size("selector_top_k", 16);
  if (d.shape.width % head.conv_group != 0)
    refuse_value(config, "conv_group_size", std::to_string(head.conv_group),
                 "a divisor of " + std::to_string(d.shape.width) + ", the width");
  if (head.conv_taps > d.block_len)
    refuse_value(config, "conv_kernel_size", std::to_string(head.conv_taps),
                 "at most " + std::to_string(d.block_len) + ", the block's length");
  if (top_k > d.target_vocab_size)
    refuse_value(config, "selector_top_k", std::to_string(top_k),
                 "at most " + std::to_string(d.target_vocab_size) + ", the vocabulary");
  if (d.shape.experts.count != 0) refuse(config, "is of a DFlash 2 with experts; expected layers of one network");
  if (head.draft_vocab_size != d.target_vocab_size)
    refuse_value(config, "draft_vocab_size", std::to_string(head.draft_vocab_size),
                 std::to_string(d.target_vocab_size) + ", the whole vocabulary, of DFlash 2");
  d.select_top_k = static_cast<std::int32_t>(top_k);
  // Published without .weight, and with it where z-lab's own module saves itself.
  const std::string weight = tensors.contains("candidate_selector.predecessor_codebook.weight") ? ".weight" : "";
  head.names.markov_in = "candidate_selector.predecessor_codebook" + weight;
  head.names.markov_out = "candidate_selector.successor_codebook" + weight;
  head.names.markov_gate = "candidate_selector.hidden_projection.weight";
}

// The ids of the layers of features; EAGLE's may stand in eagle_config.
std::vector<std::int64_t> layer_ids_of(const HeadFormat& format, const JsonFields& config) {
  std::vector<std::int64_t> ids = config.integers(format.layer_ids).value_or(std::vector<std::int64_t>{});
  const std::optional<JsonFields> eagle =
      is_key_of(format.keys, "eagle_config") ? config.object("eagle_config") : std::nullopt;
  if (!eagle) return ids;
  refuse_unknown_keys(*eagle, {" eagle_aux_hidden_state_layer_ids use_aux_hidden_state "});
  if (!eagle->boolean("use_aux_hidden_state").value_or(true))
    refuse_value(*eagle, "use_aux_hidden_state", "false", "a head that reads several layers");
  const auto inside = eagle->integers(format.layer_ids);
  if (inside && !ids.empty() && *inside != ids)
    refuse(config, in_quotes(format.layer_ids) + " is not that in 'eagle_config'; expected one list");
  return inside ? *inside : ids;
}

// block: the object that holds the ids.
void read_features(const HeadFormat& format, const JsonFields& config, const JsonFields& block, HeadConfig& head) {
  HeadDescription& d = head.description;
  if (is_key_of(format.keys, "num_target_layers")) d.target_layers = size_or(config, "num_target_layers", 0);
  if (format.layer_ids == nullptr) return;
  const std::vector<std::int64_t> ids = layer_ids_of(format, block);
  if (ids.empty() && format.needs_layer_ids) block.fail(format.layer_ids, "a list of layers");
  const bool are_outputs = format.name == "EAGLE" && !ids.empty() && ids.front() == 1;
  d.feature_layers = rising_layers(block.where(), format.layer_ids, ids, are_outputs ? 1 : format.ids_below);
  head.num_features = std::ssize(ids);
  // As many as the family's rule gives.
  if (ids.empty()) head.num_features = joins_pairs(d.family) ? 3 : d.shape.num_layers;
  // hidden_states[L] of the library behind z-lab's ids is the normed state, unlike the others.
  if (d.target_layers != 0 && !ids.empty() && d.feature_layers.back() >= d.target_layers)
    refuse(block, in_quotes(format.layer_ids) + " has " + std::to_string(ids.back()) +
                      ", and of the last layer some programs hand out the residual stream and some the normed state; "
                      "expected layers below " +
                      std::to_string(d.target_layers - 1));
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
  if (!has_experts(tensors, names.first_layer)) shape.experts = {};
  if (shape.experts.shared != 0) shape.feed_forward = shape.experts.shared;
  for (const std::string& type : config.strings("layer_types").value_or(std::vector<std::string>{}))
    if (type != "full_attention")
      refuse(config, "'layer_types' has " + in_quotes(type) + "; expected full_attention for every layer");
  require_unit_scale(config);
  head.description.target_vocab_size = size_of(config, "vocab_size");
}

void read_mask(const JsonFields& block, HeadDescription& head) {
  const std::int64_t token = block.required_integer("mask_token_id");
  if (token < 0 || token >= head.target_vocab_size)
    refuse_value(block, "mask_token_id", std::to_string(token),
                 "a token below " + std::to_string(head.target_vocab_size) + ", the target's vocabulary");
  head.mask_token = static_cast<Token>(token);
}

void read_block(const JsonFields& config, const JsonFields& block, HeadDescription& head) {
  read_mask(block, head);
  const std::optional<std::int64_t> outside = config.integer("block_size"), inside = block.integer("block_size");
  if (outside && inside && *outside != *inside)
    refuse(config, "'block_size' is " + std::to_string(*outside) + ", and " + std::to_string(*inside) +
                       " in 'dflash_config'; expected one length");
  std::int64_t length = head.format == "speculators" ? 8 : 0;
  if (outside || inside || length == 0) length = outside ? *outside : block.required_integer("block_size");
  const std::int64_t least = head.from_anchor ? 1 : 2;
  if (length < least || length > 1024)
    refuse_value(config, "block_size", std::to_string(length), std::to_string(least) + " to 1024");
  head.block_len = static_cast<std::int32_t>(length);
  if (head.trained_len == 0) head.trained_len = head.block_len - (head.from_anchor ? 0 : 1);
}

// The proposal of vLLM's speculators.
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
      refuse_value(method, "accept_tolerance", number("%g", head.accept_tolerance), "a number from 0 on");
    return;
  }
  refuse(*proposals, "'default_proposal_method' is " + in_quotes(wanted) + ", and no proposal method is of that type");
}

// Are the layers of the target there beside those of MTP?
bool holds_target(const TensorCollector& tensors, const std::string& mtp_prefix) {
  return mtp_prefix != "model.layers.0." && tensors.contains("model.layers.0.input_layernorm.weight");
}

// MTP of Qwen and DeepSeek: a layer of its own, or one in the target's files, whose embeddings and logits are there.
void name_mtp(const TensorCollector& tensors, HeadConfig& head) {
  const std::vector<std::string> prefixes = mtp_prefixes(tensors);
  if (prefixes.size() > 1)
    throw input_error(tensors.path(), "has MTP layers " + in_quotes(prefixes[0]) + " and " + in_quotes(prefixes[1]) +
                                          "; expected one, which drafts every token");
  const std::string& prefix = prefixes.front();
  HeadNames& names = head.names;
  if (names.first_layer == "model.layers.L") names.first_layer = prefix.substr(0, prefix.size() - 1);
  if (!holds_target(tensors, prefix)) return;
  head.inside = prefix;
  for (std::string* const of_target : {&names.embedding, &names.head})
    if (!of_target->starts_with('.')) of_target->clear();
}

// MTP: the layers that the config describes are the target's, and the head's is one more, which DeepSeek numbers.
void count_target_layers(const TensorCollector& tensors, HeadConfig& head) {
  HeadDescription& d = head.description;
  constexpr std::string_view kPrefix = "model.layers.";
  const std::string& layer = head.names.first_layer;
  if (layer.starts_with(kPrefix) && layer.substr(kPrefix.size()) != std::to_string(d.shape.num_layers)) {
    if (layer.substr(kPrefix.size()) != "0")
      throw input_error(tensors.where(head.names.fuse), "is of layer " + layer.substr(kPrefix.size()) + "; expected " +
                                                            std::to_string(d.shape.num_layers) +
                                                            ", which stands behind the target's 'num_hidden_layers'");
  } else {
    d.target_layers = d.shape.num_layers;
  }
  d.shape.num_layers = 1;
}

HeadConfig read_format(const HeadFormat& format, const JsonFields& config, const TensorCollector& tensors) {
  HeadConfig head;
  HeadDescription& d = head.description;
  HeadNames& names = head.names;
  d.format = format.name;
  d.family = format.family;
  names = format.names;
  if (tensors.contains("midlayer.self_attn.q_proj.weight") && d.family == HeadFamily::eagle3)
    names.first_layer = "midlayer";
  if (format.name == "MTP") name_mtp(tensors, head);
  for (std::string* const name :
       {&names.embedding, &names.head, &names.embed_norm, &names.hidden_norm, &names.out_norm, &names.fuse})
    if (name->starts_with('.')) name->insert(0, names.first_layer);
  const bool is_speculators = format.name == "speculators";
  const JsonFields layers = is_speculators ? part_of(config, "transformer_layer_config") : config;
  const JsonFields block = format.name == "DFlash" ? part_of(config, "dflash_config") : config;
  if (is_speculators) {
    refuse_unknown_keys(layers, {});
    read_proposal(config, d);
  }
  if (format.name == "DFlash") {
    require_text(block, "projector_type", {"dflash", "dspark"}, "dflash or dspark");
    require_text(block, "attention_mode", {"gqa"}, "gqa");
    refuse_unknown_keys(block, format.inside);
  }
  read_switches(format, config, head);
  if (format.type == "dspark") read_markov(block, is_speculators, head);
  refuse_unknown_keys(config, format.keys);
  read_layers(layers, tensors, head);
  d.target_width = size_or(config, "target_hidden_size", d.shape.width);
  d.zero_first_embedding = format.type == "deepseek";
  read_features(format, config, block, head);
  head.draft_vocab_size = d.target_vocab_size;
  if (is_key_of(format.keys, "draft_vocab_size"))
    head.draft_vocab_size = size_or(config, "draft_vocab_size", d.target_vocab_size);
  if (d.family == HeadFamily::mtp) count_target_layers(tensors, head);
  if (d.family == HeadFamily::dflash) read_block(config, block, d);
  if (format.type == "dflash2") read_selector(config, block, tensors, is_speculators, head);
  if (d.family == HeadFamily::peagle) read_mask(block, d);
  if (format.name != "DeepSpec" || d.family != HeadFamily::eagle3) return head;
  d.trained_len = static_cast<std::int32_t>(size_or(config, "ttt_length", 0));
  if (d.shape.num_layers != 1) refuse_value(config, "num_hidden_layers", std::to_string(d.shape.num_layers), "1");
  return head;
}

HeadConfig read_medusa(const JsonFields& config, const TensorCollector& tensors) {
  HeadConfig head;
  HeadDescription& d = head.description;
  MedusaNames& medusa = head.medusa;
  d.family = HeadFamily::medusa;
  d.format = "Medusa";
  medusa.is_vllm = !tensors.contains("0.0.linear.weight");
  medusa.prefix = tensors.contains("medusa_heads.blocks.0.layers.0.weight") ? "medusa_heads." : "";
  for (const char* const prefix : {"", "heads.", "medusa_heads."}) {
    if (!tensors.contains(std::string(prefix) + "0.0.weight")) continue;
    medusa.is_vllm = false;
    medusa.is_plain = true;
    medusa.prefix = prefix;
  }
  refuse_unknown_keys(config, {" num_heads medusa_num_heads medusa_num_layers truncated_vocab_size original_lm_head "
                               "medusa_fc_bias logit_scale "});
  require_unit_scale(config);
  if (medusa.is_vllm) {
    medusa.heads = size_of(config, "num_heads");
    medusa.blocks = size_of(config, "num_hidden_layers");
    medusa.has_bias = config.boolean("medusa_fc_bias").value_or(false);
    medusa.shares_head = config.boolean("original_lm_head").value_or(false);
  } else {
    medusa.heads = size_of(config, "medusa_num_heads");
    medusa.blocks = size_or(config, "medusa_num_layers", 1);
    if (medusa.is_plain && medusa.blocks != 1)
      refuse_value(config, "medusa_num_layers", std::to_string(medusa.blocks), "1 of heads of two linear layers");
    medusa.has_bias = tensors.contains(medusa.is_plain ? medusa.prefix + "0.0.bias" : "0.0.linear.bias");
  }
  const std::string first = medusa.is_plain  ? medusa.prefix + "0.0.weight"
                            : medusa.is_vllm ? medusa.prefix + "blocks.0.layers.0.weight"
                                             : "0.0.linear.weight";
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

// --- which format is it? ---------------------------------------------------------------------------------------------

bool has_any(const JsonFields& config, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return config.find(key) != nullptr; });
}

bool is_medusa(const JsonFields& config) {
  return has_any(config, {"medusa_num_heads"}) || architecture_of(config) == "MedusaModel" ||
         config.string("model_type").value_or("") == "medusa";
}

const HeadFormat& speculators_format_of(const JsonFields& config) {
  const std::string type = config.required_string("speculators_model_type");
  if (const HeadFormat* const format = find_format("speculators", type)) return *format;
  const std::vector<std::string> known{"eagle3", "peagle", "dflash", "dflash2", "dspark", "mtp", "eagle"};
  refuse_value(config, "speculators_model_type", in_quotes(type),
               "eagle3, peagle, dflash, dflash2, dspark, mtp or eagle" + did_you_mean(type, known));
}

// Found by the config's keys alone; null: none, or Medusa.
const HeadFormat* format_of(const JsonFields& config) {
  const std::string architecture = architecture_of(config);
  if (has_any(config, {"speculators_model_type", "speculators_config"})) return &speculators_format_of(config);
  if (architecture == "Qwen3Eagle3Model") return find_format("DeepSpec", "eagle3");
  if (architecture == "Qwen3DSparkModel") return find_format("DeepSpec", "dspark");
  if (has_any(config, {"dflash_config"}) || architecture == "DFlashDraftModel" || architecture == "DSparkDraftModel" ||
      architecture == "DFlash2DraftModel") {
    const std::optional<JsonFields> block = config.object("dflash_config");
    const bool is_dspark =
        architecture == "DSparkDraftModel" || (block && block->string("projector_type").value_or("") == "dspark");
    return find_format("DFlash", architecture == "DFlash2DraftModel" ? "dflash2" : is_dspark ? "dspark" : "dflash");
  }
  if (is_medusa(config)) return nullptr;
  if (has_any(config, {"draft_vocab_size"}) || architecture.find("Eagle3") != std::string::npos)
    return find_format("EAGLE", "eagle3");
  return nullptr;
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
  constexpr Kind kKinds[] = {{"attn_conv_", "DFlash 2's convolutions in GGUF"},
                             {"ffn_conv_", "DFlash 2's convolutions in GGUF"},
                             {"selector_pred", "DFlash 2's selector in GGUF"},
                             {"selector_succ", "DFlash 2's selector in GGUF"},
                             {"hydra_", "Hydra"}};
  for (const std::string& name : tensors.names())
    for (const Kind& kind : kKinds)
      if (name.find(kind.part) != std::string::npos)
        throw input_error(tensors.where(name), "belongs to " + std::string(kind.what) + ", which is not implemented");
}

bool describes_head(const JsonFields& config) {
  return format_of(config) != nullptr || is_medusa(config);
}

bool describes_head(const TensorCollector& tensors) {
  for (const char* const name : {"fc.weight", "0.0.linear.weight", "blocks.0.layers.0.weight"})
    if (tensors.contains(name)) return true;
  const std::vector<std::string> prefixes = mtp_prefixes(tensors);
  return !prefixes.empty() && !holds_target(tensors, prefixes.front());
}

HeadConfig read_head_config(const JsonFields& config, const TensorCollector& tensors) {
  refuse_other_kinds(tensors);
  const HeadFormat* format = format_of(config);
  const bool is_unknown = format == nullptr && !is_medusa(config);
  if (const std::vector<std::string> prefixes = mtp_prefixes(tensors); is_unknown && !prefixes.empty())
    format = find_format("MTP", prefixes.front() == "mtp." ? "qwen" : "deepseek");
  else if (is_unknown && tensors.contains("fc.weight"))
    format = find_format("EAGLE", "eagle1");
  const bool has_medusa = tensors.contains("0.0.linear.weight") || tensors.contains("blocks.0.layers.0.weight");
  if (is_unknown && format == nullptr && !has_medusa)
    refuse(config,
           "describes no drafting head; expected one of vLLM's speculators, EAGLE, DFlash, DeepSpec, Medusa or MTP");
  HeadConfig head = format != nullptr ? read_format(*format, config, tensors) : read_medusa(config, tensors);
  head.where = config.where();
  return head;
}

}  // namespace draftproof
