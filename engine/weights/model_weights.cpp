#include "engine/weights/model_weights.hpp"

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/archives/safetensors.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/weights/json_fields.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

struct TensorNames {
  const char* token_embedding;
  const char* final_norm;
  const char* head;
  const char* layer;  // in front of the number of a layer
  const char* attention_norm;
  const char* query;
  const char* key;
  const char* value;
  const char* query_bias;
  const char* key_bias;
  const char* value_bias;
  const char* query_norm;
  const char* key_norm;
  const char* output;
  const char* feed_forward_norm;
  const char* gate;
  const char* up;
  const char* down;
};

constexpr TensorNames kGgufNames = {
    "token_embd.weight",   "output_norm.weight",  "output.weight",    "blk.",
    ".attn_norm.weight",   ".attn_q.weight",      ".attn_k.weight",   ".attn_v.weight",
    ".attn_q.bias",        ".attn_k.bias",        ".attn_v.bias",     ".attn_q_norm.weight",
    ".attn_k_norm.weight", ".attn_output.weight", ".ffn_norm.weight", ".ffn_gate.weight",
    ".ffn_up.weight",      ".ffn_down.weight",
};

constexpr TensorNames kFolderNames = {
    "model.embed_tokens.weight",
    "model.norm.weight",
    "lm_head.weight",
    "model.layers.",
    ".input_layernorm.weight",
    ".self_attn.q_proj.weight",
    ".self_attn.k_proj.weight",
    ".self_attn.v_proj.weight",
    ".self_attn.q_proj.bias",
    ".self_attn.k_proj.bias",
    ".self_attn.v_proj.bias",
    ".self_attn.q_norm.weight",
    ".self_attn.k_norm.weight",
    ".self_attn.o_proj.weight",
    ".post_attention_layernorm.weight",
    ".mlp.gate_proj.weight",
    ".mlp.up_proj.weight",
    ".mlp.down_proj.weight",
};

struct FoundTensor {
  WeightTensor tensor;
  std::vector<std::int64_t> shape;
  std::string where;  // for messages
  bool used = false;
};

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text.append(i == 0 ? "" : ", ").append(std::to_string(shape[i]));
  return text + "]";
}

// Takes tensors by name out of what a file has, and in the end knows which were never asked for.
class Collector {
 public:
  Collector(std::string path, const TensorNames& names) : path_(std::move(path)), names_(names) {}

  void add(const std::string& name, FoundTensor tensor) {
    if (!found_.emplace(name, std::move(tensor)).second)
      throw input_error(path_, "has the tensor " + in_quotes(name) + " twice; each must be there once");
  }
  bool contains(const std::string& name) const { return found_.contains(name); }
  void ignore(const std::string& name) {
    if (const auto found = found_.find(name); found != found_.end()) found->second.used = true;
  }
  FoundTensor& require(const std::string& name) {
    const auto found = found_.find(name);
    if (found == found_.end()) throw input_error(path_, "has no tensor " + in_quotes(name) + "; the model needs it");
    found->second.used = true;
    return found->second;
  }
  WeightTensor take(const std::string& name, std::int64_t rows, std::int64_t columns) {
    return take_shape(name, {rows, columns});
  }
  WeightTensor take(const std::string& name, std::int64_t length) { return take_shape(name, {length}); }

  void collect(ModelWeights& model);

 private:
  WeightTensor take_shape(const std::string& name, const std::vector<std::int64_t>& shape) {
    const FoundTensor& found = require(name);
    if (found.shape != shape)
      throw input_error(found.where, "has shape " + text_of(found.shape) + "; expected " + text_of(shape));
    return found.tensor;
  }
  LayerWeights layer(std::int64_t index, const ModelDescription& model);
  void refuse_unused() const;

  std::string path_;
  const TensorNames& names_;
  std::map<std::string, FoundTensor> found_;
};

LayerWeights Collector::layer(std::int64_t index, const ModelDescription& model) {
  const std::string prefix = names_.layer + std::to_string(index);
  const std::int64_t query_rows = model.num_heads * model.head_size;
  const std::int64_t kv_rows = model.num_kv_heads * model.head_size;
  LayerWeights layer;
  layer.attention_norm = take(prefix + names_.attention_norm, model.width);
  layer.query = take(prefix + names_.query, query_rows, model.width);
  layer.key = take(prefix + names_.key, kv_rows, model.width);
  layer.value = take(prefix + names_.value, kv_rows, model.width);
  if (model.has_qkv_bias) {
    layer.query_bias = take(prefix + names_.query_bias, query_rows);
    layer.key_bias = take(prefix + names_.key_bias, kv_rows);
    layer.value_bias = take(prefix + names_.value_bias, kv_rows);
  }
  if (model.has_qk_norm) {
    layer.query_norm = take(prefix + names_.query_norm, model.head_size);
    layer.key_norm = take(prefix + names_.key_norm, model.head_size);
  }
  layer.output = take(prefix + names_.output, model.width, query_rows);
  layer.feed_forward_norm = take(prefix + names_.feed_forward_norm, model.width);
  layer.gate = take(prefix + names_.gate, model.feed_forward, model.width);
  layer.up = take(prefix + names_.up, model.feed_forward, model.width);
  layer.down = take(prefix + names_.down, model.width, model.feed_forward);
  return layer;
}

void Collector::collect(ModelWeights& model) {
  ModelDescription& description = model.description;
  const FoundTensor& embedding = require(names_.token_embedding);
  if (embedding.shape.size() != 2 || embedding.shape[0] > std::numeric_limits<std::int32_t>::max())
    throw input_error(embedding.where, "has shape " + text_of(embedding.shape) + "; expected [vocabulary, width]");
  description.vocab_size = embedding.shape[0];
  model.token_embedding = take(names_.token_embedding, description.vocab_size, description.width);
  model.final_norm = take(names_.final_norm, description.width);
  if (description.tied) ignore(names_.head);  // some files hold it twice
  model.head = description.tied ? model.token_embedding : take(names_.head, description.vocab_size, description.width);

  const std::string first = names_.layer + std::string("0");
  description.has_qkv_bias = description.architecture == "qwen2" || contains(first + names_.query_bias);
  description.has_qk_norm = description.architecture == "qwen3";
  for (std::int64_t i = 0; i < description.num_layers; ++i) model.layers.push_back(layer(i, description));
  refuse_unused();
}

void Collector::refuse_unused() const {
  for (const auto& [name, found] : found_) {
    const bool is_constant = name == "rope_freqs.weight" || name.ends_with("rotary_emb.inv_freq");
    if (!found.used && !is_constant)
      throw input_error(found.where, "belongs to no layer that the description has; is the architecture another one?");
  }
}

TensorKind kind_of(const TensorView& view) {
  switch (view.dtype) {
    case DType::f32:
      return TensorKind::f32;
    case DType::f16:
      return TensorKind::f16;
    case DType::bf16:
      return TensorKind::bf16;
    default:
      throw input_error(view.where, "has dtype " + std::string(dtype_name(view.dtype)) + "; expected F32, F16 or BF16");
  }
}

FoundTensor found_in(const SafetensorsFile& file, const std::string& name,
                     std::vector<std::shared_ptr<const void>>& owners) {
  const TensorView view = file.tensor(name);
  FoundTensor found;
  found.where = view.where;
  for (const std::uint64_t dimension : view.shape) found.shape.push_back(static_cast<std::int64_t>(dimension));
  if (found.shape.empty() || view.bytes.empty()) throw input_error(view.where, "is empty; expected a matrix or vector");
  found.tensor = {name, kind_of(view), 1, found.shape.back(), view.bytes};
  found.tensor.rows = static_cast<std::int64_t>(view.element_count()) / found.shape.back();
  owners.push_back(view.owner);
  return found;
}

// The shards of a folder by name, from the index, which says of each tensor in which file it is.
std::map<std::string, std::vector<std::string>> shards_of(const std::string& index_path) {
  const JsonFields index = JsonFields::read(index_path);
  const std::optional<JsonFields> map = index.object("weight_map");
  if (!map) index.fail("weight_map", "an object");
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [name, file] : map->json().items()) {
    const std::string file_name = file.is_string() ? file.get<std::string>() : "";
    // A name and no path: an index must not lead out of its folder.
    if (file_name.empty() || file_name.find('/') != std::string::npos || file_name.front() == '.')
      throw input_error(map->where(), in_quotes(name) + " is in " + in_quotes(file_name) + "; expected a file's name");
    shards[file_name].push_back(name);
  }
  return shards;
}

}  // namespace

std::vector<const WeightTensor*> ModelWeights::tensors() const {
  std::vector<const WeightTensor*> all{&token_embedding};
  for (const LayerWeights& l : layers)
    for (const WeightTensor* const tensor :
         {&l.attention_norm, &l.query, &l.key, &l.value, &l.query_bias, &l.key_bias, &l.value_bias, &l.query_norm,
          &l.key_norm, &l.output, &l.feed_forward_norm, &l.gate, &l.up, &l.down})
      if (tensor->is_there()) all.push_back(tensor);
  all.push_back(&final_norm);
  if (!description.tied) all.push_back(&head);
  return all;
}

std::vector<float> ModelWeights::values_of(const WeightTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.rows * tensor.columns));
  decode_blocks(tensor.kind, tensor.bytes, values);
  return values;
}

ModelWeights weights_of_gguf(const std::shared_ptr<const GgufFile>& file) {
  ModelWeights model;
  model.description = describe_gguf(*file);
  model.description.tied = file->find(kGgufNames.head) == nullptr;
  model.owner = file;
  Collector collector(file->path(), kGgufNames);
  for (const GgufTensor& tensor : file->tensors()) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
    collector.add(tensor.name, {{tensor.name, tensor.kind, rows, tensor.shape.back(), tensor.bytes},
                                tensor.shape,
                                file->path() + ": " + tensor_label(tensor.name)});
  }
  collector.collect(model);
  const std::int64_t said =
      file->metadata().integer(model.description.architecture + ".vocab_size").value_or(model.description.vocab_size);
  if (said != model.description.vocab_size)
    throw input_error(file->path(), "says that its vocabulary has " + std::to_string(said) + " tokens, but " +
                                        in_quotes(kGgufNames.token_embedding) + " has " +
                                        std::to_string(model.description.vocab_size));
  return model;
}

ModelWeights weights_of_folder(const std::string& folder) {
  const auto path_of = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  ModelWeights model;
  model.description = describe_config(path_of("config.json"));
  auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  Collector collector(folder, kFolderNames);
  std::error_code ignored;
  if (const std::string index = path_of("model.safetensors.index.json"); fs::exists(index, ignored)) {
    for (const auto& [shard, names] : shards_of(index)) {
      const SafetensorsFile file = SafetensorsFile::open(path_of(shard));
      for (const std::string& name : names) collector.add(name, found_in(file, name, *owners));
    }
  } else {
    const SafetensorsFile file = SafetensorsFile::open(path_of("model.safetensors"));
    for (const std::string& name : file.names()) collector.add(name, found_in(file, name, *owners));
  }
  model.owner = owners;
  collector.collect(model);
  const std::int64_t said =
      JsonFields::read(path_of("config.json")).integer("vocab_size").value_or(model.description.vocab_size);
  if (said != model.description.vocab_size)
    throw input_error(path_of("config.json"), "'vocab_size' is " + std::to_string(said) + ", but the embedding has " +
                                                  std::to_string(model.description.vocab_size) + " rows");
  return model;
}

}  // namespace draftproof
