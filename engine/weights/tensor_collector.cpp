#include "engine/weights/tensor_collector.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/archives/safetensors.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/weights/json_fields.hpp"
#include "engine/weights/unaligned.hpp"

namespace draftproof {
namespace {

bool is_integer(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8:
    case DType::i8:
    case DType::u16:
    case DType::i16:
    case DType::u32:
    case DType::i32:
    case DType::i64:
      return true;
    default:
      return false;
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

std::int64_t integer_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::i8:
      return load_unaligned<std::int8_t>(at);
    case DType::i16:
      return load_unaligned<std::int16_t>(at);
    case DType::u16:
      return load_unaligned<std::uint16_t>(at);
    case DType::i32:
      return load_unaligned<std::int32_t>(at);
    case DType::u32:
      return load_unaligned<std::uint32_t>(at);
    case DType::i64:
      return load_unaligned<std::int64_t>(at);
    default:
      return load_unaligned<std::uint8_t>(at);
  }
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

std::string path_in(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text.append(i == 0 ? "" : ", ").append(std::to_string(shape[i]));
  return text + "]";
}

TensorCollector TensorCollector::of_gguf(const std::shared_ptr<const GgufFile>& file, std::string of) {
  TensorCollector collector(file->path(), std::move(of));
  collector.owner_ = file;
  for (const GgufTensor& tensor : file->tensors()) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
    collector.add(tensor.name, {{tensor.name, tensor.kind, rows, tensor.shape.back(), tensor.bytes},
                                tensor.integers,
                                tensor.shape,
                                file->path() + ": " + tensor_label(tensor.name)});
  }
  return collector;
}

TensorCollector TensorCollector::of_folder(const std::string& folder, std::string of) {
  TensorCollector collector(folder, std::move(of));
  auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  const auto add = [&](const SafetensorsFile& file, const std::string& name) {
    const TensorView view = file.tensor(name);
    Found found;
    found.where = view.where;
    for (const std::uint64_t dimension : view.shape) found.shape.push_back(static_cast<std::int64_t>(dimension));
    if (found.shape.empty() || view.bytes.empty())
      throw input_error(view.where, "is empty; expected a matrix or vector");
    if (is_integer(view.dtype)) found.integers = view.dtype;
    found.tensor = {name, found.integers ? TensorKind{} : kind_of(view), 1, found.shape.back(), view.bytes};
    found.tensor.rows = static_cast<std::int64_t>(view.element_count()) / found.shape.back();
    owners->push_back(view.owner);
    collector.add(name, std::move(found));
  };
  std::error_code ignored;
  if (const std::string index = path_in(folder, "model.safetensors.index.json");
      std::filesystem::exists(index, ignored)) {
    for (const auto& [shard, names] : shards_of(index)) {
      const SafetensorsFile file = SafetensorsFile::open(path_in(folder, shard));
      for (const std::string& name : names) add(file, name);
    }
  } else {
    const SafetensorsFile file = SafetensorsFile::open(path_in(folder, "model.safetensors"));
    for (const std::string& name : file.names()) add(file, name);
  }
  collector.owner_ = owners;
  return collector;
}

std::vector<std::string> TensorCollector::names() const {
  std::vector<std::string> names;
  for (const auto& [name, found] : found_) names.push_back(name);
  return names;
}

void TensorCollector::add(const std::string& name, Found found) {
  if (!found_.emplace(name, std::move(found)).second)
    throw input_error(path_, "has the tensor " + in_quotes(name) + " twice; each must be there once");
}

const TensorCollector::Found& TensorCollector::find(const std::string& name) const {
  const auto found = found_.find(name);
  if (found == found_.end())
    throw input_error(path_, "has no tensor " + in_quotes(name) + "; the " + of_ + " needs it");
  return found->second;
}

const std::vector<std::int64_t>& TensorCollector::shape_of(const std::string& name) const {
  return find(name).shape;
}

const TensorCollector::Found& TensorCollector::use(const std::string& name, const std::vector<std::int64_t>& shape) {
  const Found& found = find(name);
  if (found.used) throw Error(ErrorKind::internal, found.where, "is taken twice");
  if (found.shape != shape)
    throw input_error(found.where, "has shape " + shape_text(found.shape) + "; expected " + shape_text(shape));
  found_.at(name).used = true;
  return found;
}

WeightTensor TensorCollector::take_shape(const std::string& name, const std::vector<std::int64_t>& shape) {
  const Found& found = use(name, shape);
  if (found.integers)
    throw input_error(found.where, "has dtype " + std::string(dtype_name(*found.integers)) + "; expected weights");
  return found.tensor;
}

WeightTensor TensorCollector::take(const std::string& name, std::int64_t rows, std::int64_t columns) {
  return take_shape(name, {rows, columns});
}

WeightTensor TensorCollector::take(const std::string& name, std::int64_t length) {
  return take_shape(name, {length});
}

std::vector<std::int64_t> TensorCollector::take_integers(const std::string& name, std::int64_t length) {
  const Found& found = use(name, {length});
  if (!found.integers) throw input_error(found.where, "has weights; expected integers");
  const std::size_t size = dtype_size_bytes(*found.integers);
  std::vector<std::int64_t> values(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = integer_at(*found.integers, found.tensor.bytes.data() + i * size);
  return values;
}

void TensorCollector::ignore(const std::string& name) {
  if (const auto found = found_.find(name); found != found_.end()) found->second.used = true;
}

void TensorCollector::refuse_unused(const std::string& reason) const {
  for (const auto& [name, found] : found_) {
    const bool is_constant = name == "rope_freqs.weight" || name.ends_with("rotary_emb.inv_freq");
    if (!found.used && !is_constant) throw input_error(found.where, reason);
  }
}

std::vector<std::string> mtp_prefixes(const TensorCollector& tensors) {
  struct Naming {
    std::string_view layers, fuse;  // in front of the layer's number, and behind it
  };
  constexpr Naming kNamings[] = {{"model.layers.", ".eh_proj.weight"}, {"blk.", ".nextn.eh_proj.weight"}};
  std::vector<std::string> prefixes;
  for (const std::string& name : tensors.names()) {
    if (name == "mtp.fc.weight") prefixes.emplace_back("mtp.");
    for (const auto& [layers, fuse] : kNamings) {
      if (!name.starts_with(layers) || !name.ends_with(fuse) || name.size() <= layers.size() + fuse.size()) continue;
      const std::string prefix = name.substr(0, name.size() - fuse.size());
      if (prefix.find_first_not_of("0123456789", layers.size()) == std::string::npos) prefixes.push_back(prefix + ".");
    }
  }
  return prefixes;
}

bool has_experts(const TensorCollector& tensors, const std::string& prefix) {
  return tensors.contains(prefix + ".mlp.gate.weight") || tensors.contains(prefix + ".mlp.experts.0.gate_proj.weight");
}

LayerWeights take_layer(TensorCollector& tensors, const std::string& prefix, const LayerNames& names,
                        const ModelDescription& model, std::int64_t input_width, bool has_attention_norm) {
  const std::int64_t query_rows = model.num_heads * model.head_size;
  const std::int64_t kv_rows = model.num_kv_heads * model.head_size;
  LayerWeights layer;
  if (has_attention_norm) layer.attention_norm = tensors.take(prefix + names.attention_norm, model.width);
  layer.query = tensors.take(prefix + names.query, query_rows, input_width);
  layer.key = tensors.take(prefix + names.key, kv_rows, input_width);
  layer.value = tensors.take(prefix + names.value, kv_rows, input_width);
  if (model.has_qkv_bias) {
    layer.query_bias = tensors.take(prefix + names.query_bias, query_rows);
    layer.key_bias = tensors.take(prefix + names.key_bias, kv_rows);
    layer.value_bias = tensors.take(prefix + names.value_bias, kv_rows);
  }
  if (model.has_qk_norm) {
    layer.query_norm = tensors.take(prefix + names.query_norm, model.head_size);
    layer.key_norm = tensors.take(prefix + names.key_norm, model.head_size);
  }
  layer.output = tensors.take(prefix + names.output, model.width, query_rows);
  layer.feed_forward_norm = tensors.take(prefix + names.feed_forward_norm, model.width);
  const auto take_network = [&](const std::string& names_of, std::int64_t feed_forward, auto& network) {
    network.gate = tensors.take(names_of + "gate_proj.weight", feed_forward, model.width);
    network.up = tensors.take(names_of + "up_proj.weight", feed_forward, model.width);
    network.down = tensors.take(names_of + "down_proj.weight", model.width, feed_forward);
  };
  const ExpertShape& experts = model.experts;
  if (experts.count == 0) {
    layer.gate = tensors.take(prefix + names.gate, model.feed_forward, model.width);
    layer.up = tensors.take(prefix + names.up, model.feed_forward, model.width);
    layer.down = tensors.take(prefix + names.down, model.width, model.feed_forward);
    return layer;
  }
  const std::string mlp = prefix + ".mlp.";
  layer.router = tensors.take(mlp + "gate.weight", experts.count, model.width);
  if (experts.by_sigmoid) layer.router_bias = tensors.take(mlp + "gate.e_score_correction_bias", experts.count);
  if (experts.shared != 0)
    take_network(mlp + (experts.by_sigmoid ? "shared_experts." : "shared_expert."), experts.shared, layer);
  if (experts.shared != 0 && !experts.by_sigmoid)
    layer.shared_gate = tensors.take(mlp + "shared_expert_gate.weight", 1, model.width);
  for (std::int64_t i = 0; i < experts.count; ++i)
    take_network(mlp + "experts." + std::to_string(i) + ".", experts.feed_forward, layer.experts.emplace_back());
  return layer;
}

}  // namespace draftproof
