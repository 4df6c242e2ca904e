#include "engine/weights/model_description.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kSizeMax = std::int64_t{1} << 24;  // of every number of a description; far above any model

// Numbers of one file by name; where one is missing or too large the error says so.
void check_size(const std::string& path, const std::string& name, std::int64_t value) {
  if (value < 1 || value > kSizeMax)
    throw input_error(path, name + " is " + std::to_string(value) + "; expected a number from 1 to 2^24");
}

void check_positive(const std::string& path, const std::string& name, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw input_error(path, name + " is " + std::to_string(value) + "; expected a finite number above 0");
}

// Relations that must hold between the numbers, wherever they come from.
void check(const std::string& path, const ModelDescription& model) {
  check_size(path, "the number of layers", model.num_layers);
  check_size(path, "the width", model.width);
  check_size(path, "the feed-forward width", model.feed_forward);
  check_size(path, "the number of heads", model.num_heads);
  check_size(path, "the number of KV heads", model.num_kv_heads);
  check_size(path, "the head size", model.head_size);
  check_size(path, "the context length", model.context_len_max);
  check_positive(path, "the epsilon of RMSNorm", model.rms_epsilon);
  check_positive(path, "the base of RoPE", model.rope_base);
  if (model.num_heads % model.num_kv_heads != 0)
    throw input_error(path, std::to_string(model.num_heads) + " heads cannot share " +
                                std::to_string(model.num_kv_heads) + " KV heads; expected a divisor");
  if (model.head_size % 2 != 0)
    throw input_error(path, "the head size is " + std::to_string(model.head_size) + "; RoPE expects an even one");
}

std::vector<float> equal_divisors(std::int64_t head_size, double divisor) {
  return std::vector<float>(static_cast<std::size_t>(head_size / 2), static_cast<float>(divisor));
}

void check_architecture(const std::string& where, const std::string& architecture) {
  if (architecture == "llama" || architecture == "qwen2" || architecture == "qwen3") return;
  throw input_error(where, "is " + in_quotes(architecture) + "; expected one of llama, qwen2, qwen3");
}

void refuse_experts(const std::string& path, std::int64_t experts) {
  if (experts > 0)
    throw input_error(path,
                      "is a mixture of " + std::to_string(experts) + " experts; expected one feed-forward network");
}

std::vector<float> rope_factors_of(const GgufFile& file, std::int64_t head_size) {
  const GgufTensor* const tensor = file.find("rope_freqs.weight");
  if (tensor == nullptr) return {};
  if (tensor->integers || tensor->shape != std::vector<std::int64_t>{head_size / 2})
    throw input_error(file.path() + ": tensor 'rope_freqs.weight'",
                      "expected shape [" + std::to_string(head_size / 2) + "] of floats, half the head size");
  std::vector<float> divisors(static_cast<std::size_t>(head_size / 2));
  decode_blocks(tensor->kind, tensor->bytes, divisors);
  for (const float divisor : divisors) check_positive(file.path(), "a value of tensor 'rope_freqs.weight'", divisor);
  return divisors;
}

}  // namespace

ModelDescription describe_gguf(const GgufFile& file) {
  const auto architecture = file.metadata().string("general.architecture");
  if (!architecture) throw input_error(file.path(), "metadata 'general.architecture' is missing");
  check_architecture(file.path() + ": metadata 'general.architecture'", std::string(*architecture));
  // The converters permute the rows of Q and K for llama and leave them for the others.
  return describe_gguf_layers(file, *architecture == "llama" ? RopePairing::adjacent : RopePairing::halves);
}

ModelDescription describe_gguf_layers(const GgufFile& file, RopePairing pairing) {
  const GgufMetadata& metadata = file.metadata();
  ModelDescription model;
  model.architecture = std::string(metadata.string("general.architecture").value_or(""));
  model.name = std::string(metadata.string("general.name").value_or(""));
  model.rope_pairing = pairing;

  const auto key = [&](const std::string& name) { return std::string(model.architecture).append(".").append(name); };
  const auto size = [&](const std::string& name) {
    const auto value = metadata.integer(key(name));
    if (!value) throw input_error(file.path(), "metadata " + in_quotes(key(name)) + " is missing; expected an integer");
    return *value;
  };
  model.num_layers = size("block_count");
  model.width = size("embedding_length");
  model.feed_forward = size("feed_forward_length");
  model.num_heads = size("attention.head_count");
  model.num_kv_heads = metadata.integer(key("attention.head_count_kv")).value_or(model.num_heads);
  model.context_len_max = size("context_length");
  check_size(file.path(), "the number of heads", model.num_heads);
  model.head_size = metadata.integer(key("attention.key_length")).value_or(model.width / model.num_heads);
  model.rms_epsilon = metadata.number(key("attention.layer_norm_rms_epsilon")).value_or(0);
  model.rope_base = metadata.number(key("rope.freq_base")).value_or(10000);
  check(file.path(), model);

  refuse_experts(file.path(), metadata.integer(key("expert_count")).value_or(0));
  for (const char* const name : {"rope.dimension_count", "attention.value_length"}) {
    const std::int64_t length = metadata.integer(key(name)).value_or(model.head_size);
    if (length != model.head_size)
      throw input_error(file.path(), "metadata " + in_quotes(key(name)) + " is " + std::to_string(length) +
                                         "; expected the head size " + std::to_string(model.head_size));
  }
  const std::string_view scaling = metadata.string(key("rope.scaling.type")).value_or("none");
  if (scaling != "none" && scaling != "linear")
    throw input_error(file.path(), "metadata " + in_quotes(key("rope.scaling.type")) + " is " + in_quotes(scaling) +
                                       "; expected none or linear");
  const double factor = scaling == "linear" ? metadata.number(key("rope.scaling.factor")).value_or(1)
                                            : metadata.number(key("rope.scale_linear")).value_or(1);
  check_positive(file.path(), "the factor of RoPE's scaling", factor);
  model.rope_divisors = rope_factors_of(file, model.head_size);
  if (model.rope_divisors.empty()) model.rope_divisors = equal_divisors(model.head_size, factor);
  return model;
}

std::vector<float> llama3_divisors(double rope_base, std::int64_t head_size, double factor, double low_factor,
                                   double high_factor, double original_context) {
  std::vector<float> divisors;
  const double log_base = natural_log(rope_base);
  for (std::int64_t i = 0; i < head_size / 2; ++i) {
    const double frequency = natural_exp(-2.0 * static_cast<double>(i) / static_cast<double>(head_size) * log_base);
    const double turns = original_context * frequency / (2 * std::numbers::pi);  // within the original context
    const double kept = std::clamp((turns - low_factor) / (high_factor - low_factor), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - kept) / factor + kept)));
  }
  return divisors;
}

namespace {

std::vector<float> divisors_of(const JsonFields& scaling, const ModelDescription& model) {
  const std::string type = scaling.string("rope_type").value_or(scaling.string("type").value_or("default"));
  if (type == "default") return equal_divisors(model.head_size, 1);
  const auto number = [&](const char* key) {
    const auto value = scaling.number(key);
    if (!value) scaling.fail(key, "a number");
    check_positive(scaling.where(), in_quotes(key), *value);
    return *value;
  };
  if (type == "linear") return equal_divisors(model.head_size, number("factor"));
  if (type != "llama3")
    throw input_error(scaling.where(), "the type is " + in_quotes(type) + "; expected default, linear or llama3");
  const double low = number("low_freq_factor");
  const double high = number("high_freq_factor");
  if (high <= low) throw input_error(scaling.where(), "high_freq_factor must be above low_freq_factor");
  return llama3_divisors(model.rope_base, model.head_size, number("factor"), low, high,
                         number("original_max_position_embeddings"));
}

// The base and the scaling of RoPE. Older files have the base beside the scaling, newer ones inside it; where a file
// has both they agree.
void describe_rope(const JsonFields& config, ModelDescription& model) {
  const std::string& where = config.where();
  const std::optional<JsonFields> parameters = config.object("rope_parameters");
  const std::optional<JsonFields> scaling = config.object("rope_scaling");
  if (parameters)
    for (const auto& [key, value] : parameters->json().items())
      if (value.is_object())
        throw input_error(parameters->where(),
                          "has settings of their own for " + in_quotes(key) + "; expected one base for all layers");
  const std::optional<double> beside = config.number("rope_theta");
  const std::optional<double> inside = parameters ? parameters->number("rope_theta") : std::nullopt;
  if (beside && inside && *beside != *inside)
    throw input_error(where, "'rope_theta' is " + number("%g", *beside) + ", and " + number("%g", *inside) +
                                 " in 'rope_parameters'; expected one base");
  model.rope_base = inside.value_or(beside.value_or(10000));
  check_positive(where, "the base of RoPE", model.rope_base);
  for (const JsonFields* const of : {&config, parameters ? &*parameters : nullptr}) {
    if (of == nullptr) continue;
    const double rotated = of->number("partial_rotary_factor").value_or(1.0);
    if (rotated != 1.0)
      throw input_error(of->where(), "'partial_rotary_factor' is " + number("%g", rotated) +
                                         "; expected 1, the rotation of whole heads");
  }
  model.rope_divisors = equal_divisors(model.head_size, 1);
  if (scaling) model.rope_divisors = divisors_of(*scaling, model);
  if (!parameters) return;
  const std::vector<float> divisors = divisors_of(*parameters, model);
  if (scaling && divisors != model.rope_divisors)
    throw input_error(where, "'rope_scaling' and 'rope_parameters' ask for different angles; expected one scaling");
  model.rope_divisors = divisors;
}

}  // namespace

namespace {

// The class that an engine makes of the file, as "LlamaForCausalLM" or "LlamaForCausalLMEagle3": it decides biases and
// norms whatever model_type says. Empty: none of this family.
std::string class_of(const JsonFields& config) {
  const auto names = config.strings("architectures");
  std::string name = names && !names->empty() ? names->front() : std::string();
  for (const std::string_view drafter : {"Eagle3", "Eagle"})
    if (const std::size_t at = name.find(drafter); at != std::string::npos) name.erase(at, drafter.size());
  if (name == "LlamaForCausalLM" || name == "MistralForCausalLM") return "llama";
  if (name == "Glm4MoeForCausalLM") return "llama";
  if (name == "Qwen2ForCausalLM") return "qwen2";
  return name == "Qwen3ForCausalLM" || name == "Qwen3MoeForCausalLM" ? "qwen3" : "";
}

ExpertShape describe_experts(const JsonFields& config) {
  const std::string& where = config.where();
  // transformers 5 calls num_experts num_local_experts.
  const std::int64_t of_qwen = config.integer("num_experts").value_or(config.integer("num_local_experts").value_or(0));
  const bool is_qwen = of_qwen > 0;
  ExpertShape experts;
  experts.count = is_qwen ? of_qwen : config.integer("n_routed_experts").value_or(0);
  if (experts.count < 1) return {};
  experts.chosen = config.required_integer("num_experts_per_tok");
  experts.feed_forward = config.required_integer("moe_intermediate_size");
  const auto normalised = config.boolean("norm_topk_prob");  // libraries differ in what they take a missing key for
  if (!normalised) config.fail("norm_topk_prob", "true or false");
  experts.normalised = *normalised;
  if (is_qwen) {
    experts.shared = config.integer("shared_expert_intermediate_size").value_or(0);
  } else {
    for (const auto& [key, known] : {std::pair("scoring_func", "sigmoid"), std::pair("topk_method", "noaux_tc")})
      if (const std::string value = config.string(key).value_or(known); value != known)
        throw input_error(where, in_quotes(key) + " is " + in_quotes(value) + "; expected " + known);
    experts.by_sigmoid = true;
    experts.shared = config.integer("n_shared_experts").value_or(0) * experts.feed_forward;
    experts.scale = config.number("routed_scaling_factor").value_or(1);
    experts.groups = config.integer("n_group").value_or(1);
    experts.groups_chosen = config.integer("topk_group").value_or(1);
    check_positive(where, "'routed_scaling_factor'", experts.scale);
  }
  check_size(where, "the feed-forward width of an expert", experts.feed_forward);
  const std::int64_t in_group = experts.groups < 1 ? 0 : experts.count / experts.groups;
  if (experts.count > 65536 || experts.shared < 0 || in_group * experts.groups != experts.count ||
      (experts.groups > 1 && in_group < 2) || experts.groups_chosen < 1 || experts.groups_chosen > experts.groups ||
      experts.chosen < 1 || experts.chosen > experts.groups_chosen * in_group)
    throw input_error(where, "chooses " + std::to_string(experts.chosen) + " of " + std::to_string(experts.count) +
                                 " experts from " + std::to_string(experts.groups_chosen) + " of " +
                                 std::to_string(experts.groups) +
                                 " groups; expected groups of one size, 2 at least, that hold as many");
  return experts;
}

}  // namespace

ModelDescription describe_config(const JsonFields& config) {
  const std::string& path = config.where();
  ModelDescription model;
  model.architecture = class_of(config);
  if (model.architecture.empty()) model.architecture = config.required_string("model_type");
  // A Mistral model whose attention sees everything is a Llama model.
  if (model.architecture == "mistral" || model.architecture == "glm4_moe") model.architecture = std::string("llama");
  if (model.architecture == "qwen3_moe") model.architecture = std::string("qwen3");
  check_architecture(path + ": 'model_type'", model.architecture);
  model.name = config.string("_name_or_path").value_or("");
  model.num_layers = config.required_integer("num_hidden_layers");
  model.width = config.required_integer("hidden_size");
  model.feed_forward = config.required_integer("intermediate_size");
  model.num_heads = config.required_integer("num_attention_heads");
  model.num_kv_heads = config.integer("num_key_value_heads").value_or(model.num_heads);
  model.context_len_max = config.required_integer("max_position_embeddings");
  check_size(path, "'num_attention_heads'", model.num_heads);
  model.head_size = config.integer("head_dim").value_or(model.width / model.num_heads);
  model.rms_epsilon = config.number("rms_norm_eps").value_or(1e-6);
  check_size(path, "the head size", model.head_size);
  describe_rope(config, model);
  model.rope_pairing = RopePairing::halves;
  model.tied = config.boolean("tie_word_embeddings").value_or(false);
  model.experts = describe_experts(config);
  check(path, model);

  const std::string activation = config.string("hidden_act").value_or("silu");
  if (activation != "silu") throw input_error(path, "'hidden_act' is " + in_quotes(activation) + "; expected silu");
  const bool slides = config.boolean("use_sliding_window").value_or(true) && config.find("sliding_window") != nullptr;
  if (slides && config.integer("sliding_window").value_or(0) < model.context_len_max)
    throw input_error(path, "'sliding_window' is " + std::to_string(config.integer("sliding_window").value_or(0)) +
                                "; expected attention to the whole context");
  return model;
}

}  // namespace draftproof
