#include "engine/heads/head_metadata.hpp"

#include <limits>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace draftproof {
namespace {

std::string key_of(const GgufFile& file, const std::string& name) {
  return std::string(file.metadata().string("general.architecture").value_or("")) + "." + name;
}

// The same rule as for a config, over the keys behind the architecture's name.
void refuse_unknown_keys(const GgufFile& file) {
  constexpr std::string_view kKnown =
      " block_count embedding_length feed_forward_length attention.head_count attention.head_count_kv "
      "context_length attention.key_length attention.value_length attention.layer_norm_rms_epsilon "
      "rope.freq_base rope.dimension_count rope.scaling.type rope.scaling.factor "
      "rope.scaling.original_context_length rope.scale_linear vocab_size extract_layers target_layers "
      "target_hidden_size norm_before_residual norm_before_fc norm_output block_size mask_token_id "
      "sample_from_anchor markov_rank markov_head_type enable_confidence_head confidence_head_with_markov "
      "nextn_predict_layers ";
  const std::string prefix = key_of(file, "");
  for (const auto& [key, value] : file.metadata().values()) {
    if (!key.starts_with(prefix) || is_word_of(kKnown, std::string_view(key).substr(prefix.size()))) continue;
    const bool is_off =
        value.type == GgufType::string || (value.type == GgufType::array && value.count == 0) ||
        (value.type == GgufType::boolean && !*file.metadata().boolean(key)) ||
        (value.type != GgufType::array && value.type != GgufType::boolean && *file.metadata().number(key) == 0.0);
    if (!is_off)
      throw input_error(file.path(),
                        "metadata " + in_quotes(key) +
                            " may change the arithmetic and is not implemented; expected a head without it");
  }
}

std::int64_t nextn_layers(const GgufFile& file) {
  return file.metadata().integer(key_of(file, "nextn_predict_layers")).value_or(0);
}

void read_gguf_features(const GgufFile& file, HeadConfig& head) {
  const GgufMetadata& metadata = file.metadata();
  HeadDescription& d = head.description;
  // Older converters wrote the first name.
  const auto older = metadata.integers(key_of(file, "extract_layers"));
  const auto newer = metadata.integers(key_of(file, "target_layers"));
  if (older && newer && *older != *newer)
    throw input_error(file.path(), "metadata " + in_quotes(key_of(file, "extract_layers")) + " is not " +
                                       in_quotes(key_of(file, "target_layers")) + "; expected one list");
  const std::string key = key_of(file, newer ? "target_layers" : "extract_layers");
  if (!older && !newer) throw input_error(file.path(), "metadata " + in_quotes(key) + " is missing; expected layers");
  d.feature_layers = rising_layers(file.path(), key, newer ? *newer : *older, 0);
  if (d.feature_layers.empty()) throw input_error(file.path(), "metadata " + in_quotes(key) + " is empty");
  head.num_features = std::ssize(d.feature_layers);
}

// Beside MTP's own block, are those of the target there?
bool is_target(const GgufFile& file) {
  return file.find("blk.0.attn_norm.weight") != nullptr && file.find("blk.0.nextn.eh_proj.weight") == nullptr;
}

}  // namespace

bool describes_head(const GgufFile& file) {
  const std::string_view architecture = file.metadata().string("general.architecture").value_or("");
  return architecture == "eagle3" || architecture == "dflash" || (nextn_layers(file) > 0 && !is_target(file));
}

HeadConfig read_head_metadata(const GgufFile& file, const TensorCollector& tensors) {
  refuse_other_kinds(tensors);
  const GgufMetadata& metadata = file.metadata();
  const std::string architecture(metadata.string("general.architecture").value_or(""));
  HeadConfig head;
  head.where = file.path();
  head.draft_tokens_are_ids = true;
  HeadDescription& d = head.description;
  HeadNames& names = head.names;
  d.format = "GGUF";
  names.of_layer = &kGgufLayerNames;
  names.later_layers = "blk.";
  names.first_layer = "blk.0";
  names.embedding = "token_embd.weight";
  names.head = "output.weight";
  names.out_norm = "output_norm.weight";
  names.fuse = "fc.weight";
  // The rows of Q and K stand in the order of llama for eagle3, and of qwen3 for the others.
  if (architecture == "eagle3") {
    d.family = HeadFamily::eagle3;
    d.shape = describe_gguf_layers(file, RopePairing::adjacent);
    names.embed_norm = "blk.0.attn_norm.weight";
    names.hidden_norm = "blk.0.attn_norm_2.weight";
    head.has_first_norm = false;
    d.norm_before_residual = metadata.boolean("eagle3.norm_before_residual").value_or(false);
    d.norm_output = metadata.boolean("eagle3.norm_output").value_or(false);
    if (metadata.boolean("eagle3.norm_before_fc").value_or(false)) names.fuse_norm = "enc.output_norm.weight";
    read_gguf_features(file, head);
  } else if (architecture == "dflash") {
    d.family = HeadFamily::dflash;
    d.shape = describe_gguf_layers(file, RopePairing::halves);
    names.hidden_norm = "enc.output_norm.weight";
    read_gguf_features(file, head);
    if (tensors.contains("markov_w1.weight")) {
      names.markov_in = "markov_w1.weight";
      names.markov_out = "markov_w2.weight";
      head.markov_rank = tensors.shape_of(names.markov_in).back();
      if (const auto type = metadata.string("dflash.markov_head_type").value_or("vanilla"); type != "vanilla")
        throw input_error(file.path(),
                          "metadata 'dflash.markov_head_type' is " + in_quotes(type) + "; expected vanilla");
    }
    if (tensors.contains("conf_proj.weight")) {
      names.confidence = "conf_proj.weight";
      names.confidence_bias = "conf_proj.bias";
      head.confidence_reads_markov = tensors.shape_of(names.confidence).back() != d.shape.width;
    }
    d.from_anchor = metadata.boolean("dflash.sample_from_anchor").value_or(!names.markov_in.empty());
  } else if (nextn_layers(file) > 0) {
    if (nextn_layers(file) != 1)
      throw input_error(file.path(), "metadata " + in_quotes(key_of(file, "nextn_predict_layers")) + " is " +
                                         std::to_string(nextn_layers(file)) + "; expected 1");
    d.family = HeadFamily::mtp;
    d.shape = describe_gguf(file);
    d.target_layers = d.shape.num_layers - 1;
    d.shape.num_layers = 1;
    names.first_layer = "blk." + std::to_string(d.target_layers);
    names.fuse = names.first_layer + ".nextn.eh_proj.weight";
    names.embed_norm = names.first_layer + ".nextn.enorm.weight";
    names.hidden_norm = names.first_layer + ".nextn.hnorm.weight";
    const auto own = [&](const char* name, std::string& of) {
      if (tensors.contains(names.first_layer + name)) of = names.first_layer + name;
    };
    if (is_target(file)) {
      head.inside = names.first_layer + ".";
      names.embedding.clear();
      names.head.clear();
    }
    own(".nextn.shared_head_norm.weight", names.out_norm);
    own(".nextn.shared_head_head.weight", names.head);
    own(".nextn.embed_tokens.weight", names.embedding);
    d.norm_output = true;  // as llama.cpp runs those of Qwen
  } else {
    throw input_error(file.path(), "metadata 'general.architecture' is " + in_quotes(architecture) +
                                       "; expected a head's: eagle3, dflash, or a model's with nextn_predict_layers");
  }
  refuse_unknown_keys(file);
  d.target_width = metadata.integer(key_of(file, "target_hidden_size")).value_or(d.shape.width);
  if (d.target_width < 1 || d.target_width > (std::int64_t{1} << 24))
    throw input_error(file.path(), "metadata " + in_quotes(key_of(file, "target_hidden_size")) + " is " +
                                       std::to_string(d.target_width) + "; expected a number from 1 to 2^24");
  d.shape.has_qkv_bias = tensors.contains(names.first_layer + names.of_layer->query_bias);
  d.shape.has_qk_norm = architecture == "qwen3" || tensors.contains(names.first_layer + names.of_layer->query_norm);
  d.target_vocab_size = metadata.integer(key_of(file, "vocab_size")).value_or(0);
  if (d.target_vocab_size == 0)
    if (const auto tokens = metadata.strings("tokenizer.ggml.tokens")) d.target_vocab_size = std::ssize(*tokens);
  if (d.target_vocab_size < 0 || d.target_vocab_size > (std::int64_t{1} << 24))
    throw input_error(file.path(), "metadata " + in_quotes(key_of(file, "vocab_size")) + " is " +
                                       std::to_string(d.target_vocab_size) + "; expected a number from 1 to 2^24");
  head.draft_vocab_size = tensors.contains("d2t") ? tensors.shape_of("d2t").front() : d.target_vocab_size;
  if (d.family != HeadFamily::dflash) return head;
  const auto required = [&](std::initializer_list<std::string> keys) {
    for (const std::string& key : keys)
      if (const auto value = metadata.integer(key)) return *value;
    throw input_error(file.path(), "metadata " + in_quotes(*keys.begin()) + " is missing; expected an integer");
  };
  const std::int64_t mask = required({"tokenizer.ggml.mask_token_id", "dflash.mask_token_id"});
  const std::int64_t tokens = d.target_vocab_size == 0 ? std::numeric_limits<Token>::max() : d.target_vocab_size;
  if (mask < 0 || mask >= tokens)
    throw input_error(file.path(), "the mask token is " + std::to_string(mask) + "; expected a token below " +
                                       std::to_string(tokens) + ", the target's vocabulary");
  d.mask_token = static_cast<Token>(mask);
  const std::int64_t block_len = required({"dflash.block_size"});
  if (block_len < 2 || block_len > 1024)
    throw input_error(file.path(),
                      "metadata 'dflash.block_size' is " + std::to_string(block_len) + "; expected 2 to 1024");
  d.block_len = static_cast<std::int32_t>(block_len);
  d.trained_len = d.block_len - (d.from_anchor ? 0 : 1);
  return head;
}

}  // namespace draftproof
