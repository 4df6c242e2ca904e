// A Llama of two layers with a layer for multi-token prediction in its own files.
#pragma once

#include "tests/engine/heads/head_folders.hpp"
#include "tests/engine/weights/tiny_llama.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

inline TinyLlama target_of_mtp(bool is_qwen) {
  TinyLlama tiny;
  tiny.heads = 2;
  tiny.kv_heads = 1;
  tiny.head_size = 16;
  if (is_qwen) tiny.architecture = "qwen3";
  return tiny;
}

// The layer of Qwen's names, or that of DeepSeek's as layer `index`.
inline HeadFiles mtp_layer(bool is_qwen, int index) {
  HeadFiles named = is_qwen ? mtp_of_qwen() : mtp_of_deepseek();
  if (is_qwen) return named;
  HeadFiles layer{named.label, named.config, {}, {}};
  for (const auto& [name, tensor] : named.tensors)
    layer.tensors["model.layers." + std::to_string(index) + name.substr(std::string("model.layers.12").size())] =
        tensor;
  return layer;
}

// config.json and model.safetensors, without a tokenizer.
inline void write_folder_with_mtp(const TemporaryFolder& folder, bool is_qwen, int mtp_layers = 1) {
  const TinyLlama tiny = target_of_mtp(is_qwen);
  HeadFiles files{"", nlohmann::json::parse(tiny.config()), {}, {}};
  files.config[is_qwen ? "mtp_num_hidden_layers" : "num_nextn_predict_layers"] = mtp_layers;
  TestRandom random(tiny.seed);
  tiny.each_tensor([&](const std::string&, const std::string& name, std::uint32_t rows, std::uint32_t columns) {
    files.add(name, rows == 0 ? std::vector<std::uint64_t>{columns} : std::vector<std::uint64_t>{rows, columns},
              DType::f32, TinyLlama::random_values(random, rows, columns));
  });
  for (int i = 0; i < mtp_layers; ++i)
    for (const auto& [name, tensor] : mtp_layer(is_qwen, 2 + i).tensors) files.tensors[name] = tensor;
  files.write(folder);
}

// llama.cpp's names: the last of three blocks, with embeddings and logits of the target.
inline GgufBuilder gguf_with_mtp(std::uint32_t vocab = 40) {
  TinyLlama tiny = target_of_mtp(false);
  tiny.vocab = vocab;
  tiny.layers = 3;
  GgufBuilder file = tiny.gguf();
  file.u32("llama.nextn_predict_layers", 1);
  HeadFiles more;
  more.weights("blk.2.nextn.eh_proj.weight", {32, 64}).weights("blk.2.nextn.enorm.weight", {32});
  more.weights("blk.2.nextn.hnorm.weight", {32}).weights("blk.2.nextn.shared_head_norm.weight", {32});
  return more.write(file);
}

}  // namespace draftproof::testing
