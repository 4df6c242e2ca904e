// The tensors of a model of the Llama family under one set of names, whatever file they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/weights/block_formats.hpp"
#include "engine/weights/model_description.hpp"

namespace draftproof {

// y = W x has W [rows, columns]; each row is whole blocks of the kind. A vector has one row.
struct WeightTensor {
  std::string name;  // in the file, for messages
  TensorKind kind{};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const std::byte> bytes;

  bool is_there() const { return rows != 0; }
  std::span<const std::byte> row(std::int64_t i) const {
    const auto row_bytes = static_cast<std::size_t>(encoded_bytes(kind, columns));
    return bytes.subspan(static_cast<std::size_t>(i) * row_bytes, row_bytes);
  }
};

struct LayerWeights {
  WeightTensor attention_norm;  // [width]
  WeightTensor query;           // [heads * head_size, width]
  WeightTensor key, value;      // [kv_heads * head_size, width]
  WeightTensor query_bias;      // [heads * head_size]; these three where has_qkv_bias
  WeightTensor key_bias, value_bias;
  WeightTensor query_norm, key_norm;  // [head_size], where has_qk_norm
  WeightTensor output;                // [width, heads * head_size]
  WeightTensor feed_forward_norm;     // [width]
  WeightTensor gate, up;              // [feed_forward, width]
  WeightTensor down;                  // [width, feed_forward]
  // Of a mixture; gate, up and down are then those of the network that every token goes through, or nothing.
  WeightTensor router;       // [experts, width]
  WeightTensor router_bias;  // [experts] added to scores where the best are chosen; nothing: 0
  WeightTensor shared_gate;  // [1, width] whose sigmoid the shared network's output is multiplied by; nothing: 1
  struct Expert {
    WeightTensor gate, up;  // [experts.feed_forward, width]
    WeightTensor down;      // [width, experts.feed_forward]
  };
  std::vector<Expert> experts;

  // Every tensor that is there.
  std::vector<const WeightTensor*> tensors() const;
};

struct ModelWeights {
  ModelDescription description;
  WeightTensor token_embedding;  // [vocab, width]
  std::vector<LayerWeights> layers;
  WeightTensor final_norm;            // [width]
  WeightTensor head;                  // [vocab, width]; the bytes of the embedding where they are tied
  std::shared_ptr<const void> owner;  // of all bytes

  // Every tensor that is there, once.
  std::vector<const WeightTensor*> tensors() const;

  // The values of a tensor, decoded.
  static std::vector<float> values_of(const WeightTensor& tensor);
};

// Input errors naming the file and the tensor: one that is missing, has another shape than the description asks for, or
// belongs to no layer that we know, since then the model is of another architecture than it says.
ModelWeights weights_of_gguf(const std::shared_ptr<const GgufFile>& file);
// `folder` holds config.json and model.safetensors, or shards and model.safetensors.index.json.
ModelWeights weights_of_folder(const std::string& folder);

}  // namespace draftproof
