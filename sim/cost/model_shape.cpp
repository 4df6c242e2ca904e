#include "sim/cost/model_shape.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "sim/cost/config_keys.hpp"
#include "sim/cost/model_layers.hpp"
#include "sim/cost/presets.hpp"
#include "sim/cost/quantization.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kBytesMost = 64u << 20;  // quantisers list every matrix of every expert

// --- precision ------------------------------------------------------------------------------------------------------

// Bytes of many matrices, and the format of most of them.
class FormatSum {
 public:
  void add(const WeightFormat& format, double parameters) {
    bytes_ += parameters * format.bytes;
    all_ += parameters;
    Share& share = shares_[format.name];
    share.parameters += parameters;
    share.compute_bits = format.compute_bits;
  }
  double bytes() const { return all_ > 0.0 ? bytes_ / all_ : 2.0; }
  double compute_bits() const { return most().second.compute_bits; }
  std::string name() const { return most().first; }
  bool empty() const { return all_ <= 0.0; }

 private:
  struct Share {
    double parameters = 0.0, compute_bits = 16.0;
  };
  std::pair<std::string, Share> most() const {
    const auto at = std::ranges::max_element(
        shares_, [](const auto& a, const auto& b) { return a.second.parameters < b.second.parameters; });
    if (at == shares_.end()) return {"16-bit", {}};
    return {at->first, at->second};
  }

  double bytes_ = 0.0, all_ = 0.0;
  std::map<std::string, Share> shares_;
};

using Leaves = std::vector<const char*>;

Precision precision_of_blocks(const Quantization& quantisation, const std::vector<Block>& blocks,
                              const Experts& experts, bool dense_beside) {
  FormatSum body, routed;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    const std::string layer = "layers." + std::to_string(i) + ".";
    // Names that families give the same matrix: the first one that the file describes.
    const auto format = [&](const Leaves& leaves) {
      for (const char* const leaf : leaves)
        if (const WeightFormat* const said = quantisation.said(layer + leaf)) return *said;
      return quantisation.of(layer + leaves.front());
    };
    const bool attends = block.mixer == Mixer::full || block.mixer == Mixer::sliding || block.mixer == Mixer::chunked;
    const Leaves in =
        attends ? Leaves{"self_attn.q_proj", "self_attn.qkv_proj", "self_attn.q_b_proj", "attn.wq_b", "mixer.q_proj"}
                : Leaves{"linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz", "mixer.in_proj", "mamba.in_proj",
                         "self_attn.q_proj"};
    const Leaves out = attends ? Leaves{"self_attn.o_proj", "attn.wo_b", "mixer.o_proj"}
                               : Leaves{"linear_attn.out_proj", "mixer.out_proj", "mamba.out_proj", "self_attn.o_proj"};
    body.add(format(in), 0.5 * block.mixer_parameters);
    body.add(format(out), 0.5 * block.mixer_parameters);
    if (!block.has_experts) {
      body.add(format({"mlp.up_proj", "mlp.gate_up_proj", "ffn.w1", "mixer.up_proj"}), block.ffn_parameters);
      continue;
    }
    if (dense_beside) {  // Gemma 4: "mlp" is the dense one
      body.add(format({"mlp.up_proj"}), block.ffn_parameters);
      routed.add(format({"experts.0.up_proj", "experts.gate_up_proj"}), experts.count * experts.parameters);
      continue;
    }
    body.add(format({"mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj", "ffn.shared_experts.w1",
                     "mixer.shared_experts.up_proj", "block_sparse_moe.shared_experts.w1"}),
             block.ffn_parameters);
    routed.add(format({"mlp.experts.0.up_proj", "mlp.experts.gate_up_proj", "block_sparse_moe.experts.0.w1",
                       "ffn.experts.0.w1", "mixer.experts.0.up_proj", "moe.experts.0.up_proj"}),
               experts.count * experts.parameters);
  }
  Precision precision;
  precision.weight_bytes = body.bytes();
  precision.compute_bits = body.compute_bits();
  precision.weights = body.name();
  if (!routed.empty()) {
    precision.expert_bytes = routed.bytes();
    precision.expert_compute_bits = routed.compute_bits();
    precision.experts = routed.name();
    if (precision.expert_bytes == precision.weight_bytes && precision.expert_compute_bits == precision.compute_bits)
      precision.expert_bytes = 0.0;
  }
  precision.head_bytes = quantisation.head().bytes;
  if (quantisation.unquantised().bytes >= 4.0) precision.kv_bytes = 4.0;
  if (quantisation.kv_bytes() > 0.0) precision.kv_bytes = quantisation.kv_bytes();
  return precision;
}

// --- shape ----------------------------------------------------------------------------------------------------------

// Classes whose head is the embedding where the file does not say it.
bool tied_by_class(const std::string& type) {
  for (const char* const tied :
       {"gemma", "recurrent_gemma", "cohere", "gpt2", "gpt_bigcode", "opt", "bloom", "falcon", "mpt", "starcoder2",
        "mamba", "lfm2", "smollm3", "ernie4_5", "zamba", "jetmoe", "minicpm", "plamo"})
    if (type.starts_with(tied)) return true;
  return type == "gpt_neo";
}

bool is_alike(const CacheLayers& a, const CacheLayers& b) {
  return a.values == b.values && a.window == b.window && a.stride == b.stride && a.read_most == b.read_most &&
         a.products == b.products && a.parts == b.parts;
}

void add_block(const Block& block, const Experts& experts, ModelShape& shape) {
  shape.layers += block.mixer == Mixer::none || !block.has_ffn ? 0.5 : 1.0;
  shape.body_parameters += block.mixer_parameters + block.ffn_parameters;
  shape.again_parameters += block.again;
  shape.state_values += block.state_values;
  if (block.has_experts) {
    shape.expert_layers += 1.0;
    shape.expert_parameters = experts.parameters;
  }
  for (const CacheLayers& cache : block.cache) {
    const auto alike =
        std::ranges::find_if(shape.cache, [&](const CacheLayers& other) { return is_alike(cache, other); });
    if (alike == shape.cache.end())
      shape.cache.push_back(cache);
    else
      alike->layers += 1.0;
  }
}

// Figures that a preset states rather than lets count.
void state(const ConfigKeys& config, ModelShape& shape) {
  const double layers = config.number("kv_layers", -1.0), values = config.number("kv_values", -1.0);
  if (layers >= 0.0 || values >= 0.0) {
    const double of_heads = 2.0 * shape.kv_heads * shape.head_dim;
    const bool in_heads = values < 0.0 || values == of_heads;
    shape.cache = {{layers < 0.0 ? shape.layers : std::min(layers, shape.layers), in_heads ? of_heads : values, 0, 1, 0,
                    2.0 * shape.heads * shape.head_dim, in_heads ? std::max(1.0, shape.kv_heads) : 1.0}};
  }
  shape.state_values = config.number("state_values", shape.state_values);
  const double all = 1e9 * config.number("parameters_b", 0.0);
  if (all <= 0.0) return;
  const double rest = all - (shape.total_parameters() - shape.body_parameters);
  // Less than a tenth of what was counted: the total is of other parts, or it is wrong.
  if (!(rest > 0.1 * shape.body_parameters))
    config.fail("parameters_b is " + number("%g", all / 1e9) +
                "; expected more than head, embedding and experts have, " + number("%g", (all - rest) / 1e9));
  shape.body_parameters = rest;
}

ModelShape shape_of(const Json& json, const Json& beside, const std::string& where,
                    const std::vector<std::string>& dynamic) {
  const ConfigKeys config(json, where);
  ModelShape shape;
  shape.width = config.required(keys::kWidth);
  const std::vector<Block> blocks = read_blocks(config);
  const Experts experts = read_experts(config);
  for (const Block& block : blocks) add_block(block, experts, shape);
  shape.heads = std::max(1.0, config.of_layer(keys::kHeads, 0, 1.0));
  shape.kv_heads = std::min(shape.heads, config.of_layer(keys::kKvHeads, 0, shape.heads));
  shape.head_dim = config.of_layer(keys::kHeadDim, 0, shape.width / shape.heads);
  shape.vocab = config.required(keys::kVocab);
  const std::string type = config.text("model_type");
  shape.tied = config.flag(keys::kTied, tied_by_class(type));
  if (shape.expert_layers > 0.0) {
    shape.experts = experts.count;
    shape.experts_per_token = experts.per_token;
  }
  shape.draft_layers = config.of_layer(keys::kDraftLayers, 0, 0.0);
  shape.head_parameters = shape.width * shape.vocab;
  shape.embedding_parameters = shape.tied ? 0.0 : shape.head_parameters;
  // Gemma 3n and 4: every layer has an embedding of its own.
  if (const double each = config.number("hidden_size_per_layer_input", 0.0); each > 0.0) {
    shape.embedding_parameters += each * shape.layers * config.number("vocab_size_per_layer_input", shape.vocab);
    shape.body_parameters += 3.0 * shape.width * each * shape.layers;
  }
  state(config, shape);
  shape.precision = precision_of_blocks(Quantization::of_config(json, beside, where, dynamic), blocks, experts,
                                        type.starts_with("gemma4"));
  return shape;
}

// --- presets --------------------------------------------------------------------------------------------------------

Json json_of(const TomlValue& value) {
  switch (value.kind()) {
    case TomlValue::Kind::table: {
      Json table = Json::object();
      for (const std::string& key : value.keys()) table[key] = json_of(value.at(key));
      return table;
    }
    case TomlValue::Kind::array: {
      Json array = Json::array();
      for (const TomlValue& item : value.items()) array.push_back(json_of(item));
      return array;
    }
    case TomlValue::Kind::text:
      return value.text();
    case TomlValue::Kind::flag:
      return value.flag();
    case TomlValue::Kind::integer:
    case TomlValue::Kind::number:
      return value.number();
  }
  return nullptr;
}

// An entry has the keys of a config.json, or our short names of them (config_keys.hpp).
ModelShape model_of(const TomlValue& entry) {
  Json json = json_of(entry);
  const std::string name = entry.at("name").text(), source = entry.text_or("source", entry.where());
  for (const char* const own : {"name", "aliases", "source"}) json.erase(own);
  const double bits = entry.number_or("native_bits", 16.0, 1, 64);
  json.erase("native_bits");
  if (bits < 16.0 && !json.contains("quantization_config"))
    json["quantization_config"] = {{"quant_method", bits > 4.0 ? "fp8" : "awq"}};
  {
    // Every key is read, or it is no key of a model.
    const ConfigKeys asked(json, entry.where());
    read_blocks(asked);
    read_experts(asked);
    for (const Names& names :
         {keys::kKvHeads, keys::kHeadDim, keys::kVocab, keys::kTied, keys::kHeads,
          Names{"model_type", "kv_layers", "kv_values", "state_values", "parameters_b", "hidden_size_per_layer_input",
                "vocab_size_per_layer_input", "quantization_config", "torch_dtype", "expert_dtype"}})
      asked.find(names);
    if (const auto keys = asked.not_asked(); !keys.empty())
      throw input_error(entry.at(keys.front()).where(),
                        "it is no key of this model; expected a key of config.json that says its shape");
  }
  ModelShape shape = shape_of(json, nullptr, entry.where(), {});
  shape.name = name;
  shape.source = source;
  return shape;
}

const PresetFolder<ModelShape>& model_folder() {
  static const PresetFolder<ModelShape> read = read_presets<ModelShape>("models", "model", model_of);
  return read;
}

// Text of the file that quantisers write beside a config.json.
std::string quantisation_beside(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const char* const name :
       {"hf_quant_config.json", "quantize_config.json", "quant_config.json", "quant_model_description.json"})
    if (const auto path = folder / name; std::filesystem::exists(path, ignored)) {
      std::string text(InputFile(path.string(), kBytesMost).text());
      const std::string where = printable_line(path.string());
      if (parse_json<Json>(text, where).is_discarded())
        throw input_error(where, "it is not JSON; expected what a quantiser writes beside a config.json");
      return text;
    }
  return "";
}

}  // namespace

double ModelShape::cached_values(double context, double gpus) const {
  double sum = 0.0;
  for (const CacheLayers& of : cache) sum += of.values_on(gpus) * of.kept(context);
  return sum;
}

double ModelShape::read_values(double context, double gpus) const {
  double sum = 0.0;
  for (const CacheLayers& of : cache) sum += of.values_on(gpus) * of.read(context);
  return sum;
}

double ModelShape::attention_products(double context) const {
  double sum = 0.0;
  for (const CacheLayers& of : cache) sum += of.layers * of.products * of.read(context);
  return sum;
}

CacheLayers ModelShape::full_layer() const {
  CacheLayers full;
  for (const CacheLayers& of : cache)
    if (full.layers == 0.0 || (of.window == 0.0 && full.window > 0.0) ||
        (of.window == full.window && of.stride == full.stride && of.values > full.values))
      full = of;
  full.layers = 1.0;
  return full;
}

std::optional<ModelShape> match_model(const std::string& name) {
  const ModelShape* shape = model_folder().match(name, false);
  return shape ? std::optional(*shape) : std::nullopt;
}

std::vector<std::string> model_preset_names() {
  return model_folder().preset_names();
}

ModelShape find_model(const std::string& name_or_path) {
  std::filesystem::path path = name_or_path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
  if (path.extension() == ".json")
    return model_from_config_json(std::string(InputFile(path.string(), kBytesMost).text()), path.string(),
                                  quantisation_beside(path.parent_path()));
  if (path.extension() == ".toml") return model_of(read_one_preset(path.string(), "model"));
  if (const auto shape = match_model(name_or_path)) return *shape;
  throw input_error("model " + in_quotes(name_or_path),
                    "unknown; expected a preset (nearest: " + near_names(name_or_path, model_folder().names) +
                        "), a TOML file, or a config.json");
}

ModelShape model_from_config_json(const std::string& text, const std::string& path, const std::string& quantisation) {
  const std::string where = printable_line(path);
  const Json json = parse_json<Json>(text, where);
  if (json.is_discarded()) throw input_error(where, "it is not JSON; expected a config.json of a language model");
  const Json beside = quantisation.empty() ? Json() : parse_json<Json>(quantisation, where);
  std::vector<std::string> dynamic = Quantization::order_of_dynamic(text, where);
  if (dynamic.empty()) dynamic = Quantization::order_of_dynamic(quantisation, where);
  ModelShape shape = shape_of(json, beside, where, dynamic);
  const auto name = json.find("_name_or_path");
  shape.name =
      name != json.end() && name->is_string() && !name->get<std::string>().empty() ? name->get<std::string>() : where;
  shape.source = where;
  return shape;
}

}  // namespace draftproof
