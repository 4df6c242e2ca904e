#include "engine/weights/model_weights.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/weights/json_fields.hpp"
#include "engine/weights/tensor_collector.hpp"

namespace draftproof {
namespace {

struct ModelNames {
  const char* token_embedding;
  const char* final_norm;
  const char* head;
  const char* layer;  // in front of the number of a layer
  const LayerNames& of_layer;
};

constexpr ModelNames kGgufNames = {"token_embd.weight", "output_norm.weight", "output.weight", "blk.", kGgufLayerNames};
constexpr ModelNames kFolderNames = {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight",
                                     "model.layers.", kFolderLayerNames};

void collect(TensorCollector& tensors, const ModelNames& names, ModelWeights& model) {
  ModelDescription& description = model.description;
  const std::vector<std::int64_t>& shape = tensors.shape_of(names.token_embedding);
  if (shape.size() != 2 || shape[0] > std::numeric_limits<std::int32_t>::max())
    throw input_error(tensors.where(names.token_embedding),
                      "has shape " + shape_text(shape) + "; expected [vocabulary, width]");
  description.vocab_size = shape[0];
  model.token_embedding = tensors.take(names.token_embedding, description.vocab_size, description.width);
  model.final_norm = tensors.take(names.final_norm, description.width);
  if (description.tied) tensors.ignore(names.head);  // some files hold it twice
  model.head =
      description.tied ? model.token_embedding : tensors.take(names.head, description.vocab_size, description.width);

  const std::string first = names.layer + std::string("0");
  description.has_qkv_bias = description.architecture == "qwen2" || tensors.contains(first + names.of_layer.query_bias);
  description.has_qk_norm = description.architecture == "qwen3";
  for (std::int64_t i = 0; i < description.num_layers; ++i)
    model.layers.push_back(
        take_layer(tensors, names.layer + std::to_string(i), names.of_layer, description, description.width));
  // Heads for drafting in the model's own files (heads/head_files.hpp).
  for (const std::string& prefix : mtp_prefixes(tensors)) {
    const auto is_of_prefix = [&](const LayerWeights& layer) { return layer.attention_norm.name.starts_with(prefix); };
    if (std::ranges::any_of(model.layers, is_of_prefix)) continue;
    for (const std::string& name : tensors.names())
      if (name.starts_with(prefix)) tensors.ignore(name);
  }
  tensors.refuse_unused("belongs to no layer that the description has; is the architecture another one?");
  model.owner = tensors.owner();
}

}  // namespace

std::vector<const WeightTensor*> LayerWeights::tensors() const {
  std::vector<const WeightTensor*> all;
  for (const WeightTensor* const tensor :
       {&attention_norm, &query, &key, &value, &query_bias, &key_bias, &value_bias, &query_norm, &key_norm, &output,
        &feed_forward_norm, &gate, &up, &down, &router, &router_bias, &shared_gate})
    if (tensor->is_there()) all.push_back(tensor);
  for (const Expert& expert : experts) all.insert(all.end(), {&expert.gate, &expert.up, &expert.down});
  return all;
}

std::vector<const WeightTensor*> ModelWeights::tensors() const {
  std::vector<const WeightTensor*> all{&token_embedding};
  for (const LayerWeights& layer : layers) {
    const std::vector<const WeightTensor*> of_layer = layer.tensors();
    all.insert(all.end(), of_layer.begin(), of_layer.end());
  }
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
  // Counted among the blocks, behind the model's own.
  const std::string key = model.description.architecture + ".nextn_predict_layers";
  const std::int64_t mtp_layers = file->metadata().integer(key).value_or(0);
  if (mtp_layers < 0 || mtp_layers >= model.description.num_layers)
    throw input_error(file->path(), "metadata " + in_quotes(key) + " is " + std::to_string(mtp_layers) +
                                        "; expected fewer than the " + std::to_string(model.description.num_layers) +
                                        " blocks, and 0 at least");
  model.description.num_layers -= mtp_layers;
  model.description.tied = file->find(kGgufNames.head) == nullptr;
  TensorCollector tensors = TensorCollector::of_gguf(file, "model");
  collect(tensors, kGgufNames, model);
  const std::int64_t said =
      file->metadata().integer(model.description.architecture + ".vocab_size").value_or(model.description.vocab_size);
  if (said != model.description.vocab_size)
    throw input_error(file->path(), "says that its vocabulary has " + std::to_string(said) + " tokens, but " +
                                        in_quotes(kGgufNames.token_embedding) + " has " +
                                        std::to_string(model.description.vocab_size));
  return model;
}

ModelWeights weights_of_folder(const std::string& folder) {
  const JsonFields config = JsonFields::read((std::filesystem::path(folder) / "config.json").string());
  ModelWeights model;
  model.description = describe_config(config);
  if (const std::int64_t experts = model.description.experts.count; experts != 0)
    throw input_error(config.where(),
                      "is a mixture of " + std::to_string(experts) +
                          " experts, which are run in MTP heads alone; expected one feed-forward network");
  TensorCollector tensors = TensorCollector::of_folder(folder, "model");
  collect(tensors, kFolderNames, model);
  const std::int64_t said = config.integer("vocab_size").value_or(model.description.vocab_size);
  if (said != model.description.vocab_size)
    throw input_error(config.where(), "'vocab_size' is " + std::to_string(said) + ", but the embedding has " +
                                          std::to_string(model.description.vocab_size) + " rows");
  return model;
}

}  // namespace draftproof
