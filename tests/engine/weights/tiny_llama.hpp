// A Llama of two small layers with random weights, as a GGUF file and as the files of a Hugging Face folder.
#pragma once

#include "base/archives/safetensors.hpp"
#include "tests/engine/weights/gguf_builder.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

struct TinyLlama {
  std::uint32_t layers = 2;
  std::uint32_t width = 32;
  std::uint32_t feed_forward = 64;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_size = 8;
  std::uint32_t vocab = 40;
  bool tied = true;
  std::string architecture = "llama";
  std::uint64_t seed = 1;

  using Visit = std::function<void(const std::string& gguf, const std::string& folder, std::uint32_t rows,
                                   std::uint32_t columns)>;  // rows 0: a vector

  // Every tensor under both of its names, in a fixed order.
  void each_tensor(const Visit& visit) const {
    visit("token_embd.weight", "model.embed_tokens.weight", vocab, width);
    visit("output_norm.weight", "model.norm.weight", 0, width);
    if (!tied) visit("output.weight", "lm_head.weight", vocab, width);
    for (std::uint32_t i = 0; i < layers; ++i) {
      const std::string a = "blk." + std::to_string(i) + ".";
      const std::string b = "model.layers." + std::to_string(i) + ".";
      visit(a + "attn_norm.weight", b + "input_layernorm.weight", 0, width);
      visit(a + "attn_q.weight", b + "self_attn.q_proj.weight", heads * head_size, width);
      visit(a + "attn_k.weight", b + "self_attn.k_proj.weight", kv_heads * head_size, width);
      visit(a + "attn_v.weight", b + "self_attn.v_proj.weight", kv_heads * head_size, width);
      if (architecture == "qwen2") {
        visit(a + "attn_q.bias", b + "self_attn.q_proj.bias", 0, heads * head_size);
        visit(a + "attn_k.bias", b + "self_attn.k_proj.bias", 0, kv_heads * head_size);
        visit(a + "attn_v.bias", b + "self_attn.v_proj.bias", 0, kv_heads * head_size);
      }
      if (architecture == "qwen3") {
        visit(a + "attn_q_norm.weight", b + "self_attn.q_norm.weight", 0, head_size);
        visit(a + "attn_k_norm.weight", b + "self_attn.k_norm.weight", 0, head_size);
      }
      visit(a + "attn_output.weight", b + "self_attn.o_proj.weight", width, heads * head_size);
      visit(a + "ffn_norm.weight", b + "post_attention_layernorm.weight", 0, width);
      visit(a + "ffn_gate.weight", b + "mlp.gate_proj.weight", feed_forward, width);
      visit(a + "ffn_up.weight", b + "mlp.up_proj.weight", feed_forward, width);
      visit(a + "ffn_down.weight", b + "mlp.down_proj.weight", width, feed_forward);
    }
  }

  static std::vector<float> random_values(TestRandom& random, std::uint32_t rows, std::uint32_t columns) {
    std::vector<float> values(std::size_t{rows == 0 ? 1 : rows} * columns);
    for (float& value : values) value = rows == 0 ? 1 + 0.1F * random.normal() : 0.2F * random.normal();
    return values;
  }

  GgufBuilder gguf() const {
    GgufBuilder file;
    const auto key = [&](const char* name) { return architecture + "." + name; };
    file.string("general.architecture", architecture).string("general.name", "tiny");
    file.u32(key("block_count"), layers).u32(key("context_length"), 128).u32(key("embedding_length"), width);
    file.u32(key("feed_forward_length"), feed_forward).u32(key("attention.head_count"), heads);
    file.u32(key("attention.head_count_kv"), kv_heads).f32(key("attention.layer_norm_rms_epsilon"), 1e-5F);
    file.f32(key("rope.freq_base"), 10000).u32(key("vocab_size"), vocab);
    TestRandom random(seed);
    each_tensor([&](const std::string& name, const std::string&, std::uint32_t rows, std::uint32_t columns) {
      const std::vector<float> values = random_values(random, rows, columns);
      file.f32_tensor(name, rows == 0 ? std::vector<std::uint64_t>{columns} : std::vector<std::uint64_t>{columns, rows},
                      values);
    });
    return file;
  }

  std::string config() const {
    return R"({"model_type": ")" + architecture + R"(", "num_hidden_layers": )" + std::to_string(layers) +
           R"(, "hidden_size": )" + std::to_string(width) + R"(, "intermediate_size": )" +
           std::to_string(feed_forward) + R"(, "num_attention_heads": )" + std::to_string(heads) +
           R"(, "num_key_value_heads": )" + std::to_string(kv_heads) +
           R"(, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000, "hidden_act": "silu")" +
           R"(, "tie_word_embeddings": )" + (tied ? "true" : "false") + R"(, "vocab_size": )" + std::to_string(vocab) +
           "}";
  }

  // Writes config.json and the tensors, in one file or, where shards is 2, in two with an index. The rows of Q and K
  // are in the order of the GGUF file, which no other program would expect.
  void write_folder(const TemporaryFolder& folder, int shards = 1) const {
    write_whole_file(folder.file("config.json"), config());
    TestRandom random(seed);
    std::vector<std::vector<float>> values;
    std::vector<SafetensorsWriter> writers(static_cast<std::size_t>(shards));
    std::string index;
    const auto name_of = [&](std::size_t shard) {
      return shards == 1 ? std::string("model.safetensors") : "part-" + std::to_string(shard) + ".safetensors";
    };
    values.reserve(64);
    each_tensor([&](const std::string&, const std::string& name, std::uint32_t rows, std::uint32_t columns) {
      const std::size_t shard = values.size() % writers.size();
      values.push_back(random_values(random, rows, columns));
      writers[shard].add(name, DType::f32,
                         rows == 0 ? std::vector<std::uint64_t>{columns} : std::vector<std::uint64_t>{rows, columns},
                         std::as_bytes(std::span(values.back())));
      index += (index.empty() ? "\"" : ", \"") + name + "\": \"" + name_of(shard) + "\"";
    });
    for (std::size_t i = 0; i < writers.size(); ++i) writers[i].write(folder.file(name_of(i)));
    if (shards > 1) write_whole_file(folder.file("model.safetensors.index.json"), "{\"weight_map\": {" + index + "}}");
  }
};

}  // namespace draftproof::testing
