// Random weights of any kind, and a tiny Llama made of them.
#pragma once

#include <deque>

#include "base/dtype.hpp"
#include "engine/transformer/transformer_weights.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

// Rows of blocks of `kind`, values of about `scale`. Kinds that cannot be encoded get random codes and scales.
inline std::vector<std::byte> random_blocks(TestRandom& random, TensorKind kind, std::int64_t values, float scale) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(encoded_bytes(kind, values)));
  if (can_encode(kind)) {
    std::vector<float> numbers(static_cast<std::size_t>(values));
    for (float& x : numbers) x = random.normal() * scale;
    encode_blocks(kind, numbers, bytes);
    return bytes;
  }
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(256));
  const TensorKindInfo& info = info_of(kind);
  const auto put = [&](std::size_t at, float value) {
    const std::uint16_t half = f32_to_f16(value);
    std::memcpy(bytes.data() + at, &half, sizeof half);
  };
  for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(info.block_bytes)) {
    const float d = scale * static_cast<float>(0.5 + random.uniform());
    if (kind == TensorKind::q5_0) put(at, d / 8.0f);
    if (kind == TensorKind::q6_k) put(at + 208, d / 2048.0f);
    if (kind == TensorKind::q4_k || kind == TensorKind::q5_k) {
      put(at, d / (kind == TensorKind::q4_k ? 256.0f : 512.0f));
      put(at + 2, d / 32.0f);
    }
  }
  return bytes;
}

// Tensors with their bytes.
class TensorStore {
 public:
  explicit TensorStore(std::uint64_t seed) : random_(seed) {}

  WeightTensor matrix(const std::string& name, TensorKind kind, std::int64_t rows, std::int64_t columns) {
    // Products of unit rows with such weights are of unit size.
    const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(columns)));
    return add(name, kind, rows, columns, random_blocks(random_, kind, rows * columns, scale));
  }
  // Values around `mean`.
  WeightTensor vector(const std::string& name, std::int64_t length, float mean, float deviation) {
    std::vector<float> values(static_cast<std::size_t>(length));
    for (float& x : values) x = mean + random_.normal() * deviation;
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return add(name, TensorKind::f32, 1, length, std::move(bytes));
  }

 private:
  WeightTensor add(const std::string& name, TensorKind kind, std::int64_t rows, std::int64_t columns,
                   std::vector<std::byte> bytes) {
    bytes_.push_back(std::move(bytes));
    return {name, kind, rows, columns, bytes_.back()};
  }

  TestRandom random_;
  std::deque<std::vector<std::byte>> bytes_;
};

struct RandomLlama {
  ModelWeights model;
  TensorStore store;

  // Matrices take these kinds in turn. `extras`: biases, norms of heads, a head of its own.
  RandomLlama(std::uint64_t seed, const std::vector<TensorKind>& kinds, RopePairing pairing, bool extras)
      : store(seed) {
    const bool super_blocks = std::ranges::any_of(kinds, [](TensorKind k) { return info_of(k).block_len > 32; });
    ModelDescription& shape = model.description;
    shape.num_layers = 3;
    shape.width = super_blocks ? 256 : 96;
    shape.feed_forward = super_blocks ? 512 : 160;
    shape.num_heads = super_blocks ? 8 : 6;
    shape.num_kv_heads = 2;
    shape.head_size = super_blocks ? 32 : 16;
    shape.vocab_size = 117;
    shape.context_len_max = 512;
    shape.rms_epsilon = 1e-5;
    shape.rope_base = 10000.0;
    shape.rope_pairing = pairing;
    for (std::int64_t i = 0; i < shape.head_size / 2; ++i) shape.rope_divisors.push_back(i > 3 ? 2.0f : 1.0f);
    shape.tied = !extras;
    std::size_t next = 0;
    const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
      return store.matrix(name, kinds[next++ % kinds.size()], rows, columns);
    };
    const std::int64_t query_width = shape.num_heads * shape.head_size;
    const std::int64_t kv_width = shape.num_kv_heads * shape.head_size;
    model.token_embedding = matrix("embedding", shape.vocab_size, shape.width);
    model.final_norm = store.vector("final_norm", shape.width, 3.0f, 0.3f);
    model.head = extras ? matrix("head", shape.vocab_size, shape.width) : model.token_embedding;
    for (std::int64_t l = 0; l < shape.num_layers; ++l) {
      const std::string of = "layer " + std::to_string(l) + ".";
      LayerWeights layer;
      layer.attention_norm = store.vector(of + "attention_norm", shape.width, 1.5f, 0.2f);
      layer.query = matrix(of + "query", query_width, shape.width);
      layer.key = matrix(of + "key", kv_width, shape.width);
      layer.value = matrix(of + "value", kv_width, shape.width);
      layer.output = matrix(of + "output", shape.width, query_width);
      layer.feed_forward_norm = store.vector(of + "feed_forward_norm", shape.width, 1.5f, 0.2f);
      layer.gate = matrix(of + "gate", shape.feed_forward, shape.width);
      layer.up = matrix(of + "up", shape.feed_forward, shape.width);
      layer.down = matrix(of + "down", shape.width, shape.feed_forward);
      if (extras) {
        layer.query_bias = store.vector(of + "query_bias", query_width, 0.0f, 0.3f);
        layer.key_bias = store.vector(of + "key_bias", kv_width, 0.0f, 0.3f);
        layer.value_bias = store.vector(of + "value_bias", kv_width, 0.0f, 0.3f);
        layer.query_norm = store.vector(of + "query_norm", shape.head_size, 1.5f, 0.2f);
        layer.key_norm = store.vector(of + "key_norm", shape.head_size, 1.5f, 0.2f);
      }
      model.layers.push_back(layer);
    }
  }

  std::shared_ptr<const TransformerWeights> weights() const {
    return std::make_shared<const TransformerWeights>(pack_weights(model, 1));
  }
};

}  // namespace draftproof::testing
