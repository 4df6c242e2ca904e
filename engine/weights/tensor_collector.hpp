// The tensors of a model's or a head's files, taken by name: each once, with the shape that its place asks for; what is
// never taken is refused.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "engine/weights/model_weights.hpp"

namespace draftproof {

class TensorCollector {
 public:
  // All tensors of the files. `of` says in messages who needs them: "model". Input errors naming file and tensor: what
  // the readers of files refuse; a name that is there twice; elements that are neither weights of block_formats.hpp nor
  // integers.
  static TensorCollector of_gguf(const std::shared_ptr<const GgufFile>& file, std::string of);
  // model.safetensors, or shards and model.safetensors.index.json.
  static TensorCollector of_folder(const std::string& folder, std::string of);

  const std::string& path() const { return path_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }  // of all bytes
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return found_.contains(name); }

  // Input errors of these five name the tensor: it is missing, has another shape, holds integers or, of the last, does
  // not. Error (internal): it was taken before.
  const std::vector<std::int64_t>& shape_of(const std::string& name) const;
  WeightTensor take(const std::string& name, std::int64_t rows, std::int64_t columns);
  WeightTensor take(const std::string& name, std::int64_t length);
  WeightTensor take_shape(const std::string& name, const std::vector<std::int64_t>& shape);
  std::vector<std::int64_t> take_integers(const std::string& name, std::int64_t length);

  // "folder: tensor 'name'", for messages about one that is there.
  const std::string& where(const std::string& name) const { return find(name).where; }
  void ignore(const std::string& name);
  // Input error: a tensor that was neither taken nor ignored; `reason` says what is wrong with it.
  void refuse_unused(const std::string& reason) const;

 private:
  struct Found {
    WeightTensor tensor;
    std::optional<DType> integers;  // the kind means nothing then
    std::vector<std::int64_t> shape;
    std::string where;
    bool used = false;
  };

  TensorCollector(std::string path, std::string of) : path_(std::move(path)), of_(std::move(of)) {}
  void add(const std::string& name, Found found);
  const Found& find(const std::string& name) const;
  const Found& use(const std::string& name, const std::vector<std::int64_t>& shape);

  std::string path_, of_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, Found> found_;
};

// Names of a layer's tensors, behind the layer's own prefix.
struct LayerNames {
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

inline constexpr LayerNames kGgufLayerNames = {
    ".attn_norm.weight", ".attn_q.weight",   ".attn_k.weight",      ".attn_v.weight",      ".attn_q.bias",
    ".attn_k.bias",      ".attn_v.bias",     ".attn_q_norm.weight", ".attn_k_norm.weight", ".attn_output.weight",
    ".ffn_norm.weight",  ".ffn_gate.weight", ".ffn_up.weight",      ".ffn_down.weight",
};

inline constexpr LayerNames kFolderLayerNames = {
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

// Has the layer a mixture of experts, by the names of its tensors in a folder?
bool has_experts(const TensorCollector& tensors, const std::string& prefix);

// The tensors of a layer whose Q, K and V read rows of `input_width`, with a norm in front of them or none.
LayerWeights take_layer(TensorCollector& tensors, const std::string& prefix, const LayerNames& names,
                        const ModelDescription& model, std::int64_t input_width, bool has_attention_norm = true);

// Prefixes of the tensors of layers for multi-token prediction, ascending: "mtp." (Qwen's names), "model.layers.12."
// (DeepSeek's) or "blk.12." (llama.cpp's).
std::vector<std::string> mtp_prefixes(const TensorCollector& tensors);

// "[2, 3]".
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace draftproof
