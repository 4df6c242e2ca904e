#include "cli/bench/random_model.hpp"

#include <cstring>
#include <deque>

#include "base/dtype.hpp"
#include "cli/bench/inputs.hpp"

namespace draftproof {
namespace {

// Makes tensors and keeps their bytes.
class RandomTensors {
 public:
  WeightTensor matrix(TensorKind kind, std::int64_t rows, std::int64_t columns) {
    // One row of random codes for all: what kernels do does not depend on the values.
    std::vector<std::byte> row(static_cast<std::size_t>(encoded_bytes(kind, columns)));
    if (can_encode(kind)) {
      std::vector<float> values(static_cast<std::size_t>(columns));
      pool_.fill(next_++, values.size(), values.data());
      for (float& v : values) v *= 0.04f;
      encode_blocks(kind, values, row);
    } else {
      fill_super_blocks(kind, row);
    }
    bytes_.emplace_back();
    for (std::int64_t r = 0; r < rows; ++r) bytes_.back().insert(bytes_.back().end(), row.begin(), row.end());
    return {"random", kind, rows, columns, bytes_.back()};
  }

  WeightTensor ones(std::int64_t length) {
    const std::vector<float> values(static_cast<std::size_t>(length), 1.0f);
    bytes_.emplace_back(values.size() * sizeof(float));
    std::memcpy(bytes_.back().data(), values.data(), bytes_.back().size());
    return {"ones", TensorKind::f32, 1, length, bytes_.back()};
  }

 private:
  // Codes from the bits of floats, scales of a thousandth.
  void fill_super_blocks(TensorKind kind, std::vector<std::byte>& row) {
    std::vector<float> noise(row.size());
    pool_.fill(next_++, noise.size(), noise.data());
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<std::byte>(bit_cast<std::uint32_t>(noise[i]) >> 8);
    const auto block_bytes = static_cast<std::size_t>(info_of(kind).block_bytes);
    const std::uint16_t small = f32_to_f16(0.0005f);
    for (std::size_t at = 0; at < row.size(); at += block_bytes) {
      const std::size_t scale_at = kind == TensorKind::q6_k ? 208 : 0;
      std::memcpy(row.data() + at + scale_at, &small, sizeof small);
      if (kind != TensorKind::q6_k) std::memcpy(row.data() + at + 2, &small, sizeof small);
    }
  }

  NormalPool pool_{11};
  std::uint64_t next_ = 0;
  std::deque<std::vector<std::byte>> bytes_;
};

}  // namespace

std::shared_ptr<const TransformerWeights> random_model(TensorKind body, TensorKind head, bool tiny, int threads) {
  ModelWeights model;
  ModelDescription& shape = model.description;
  shape.num_layers = tiny ? 2 : 30;
  // Formats with blocks of 256 take the next width that holds whole blocks.
  const bool super_blocks = info_of(body).block_len > 32;
  shape.width = tiny ? 256 : super_blocks ? 768 : 576;
  shape.num_heads = shape.width / 64;
  shape.num_kv_heads = tiny || super_blocks ? shape.num_heads / 2 : 3;
  shape.feed_forward = tiny ? 512 : 1536;
  shape.head_size = 64;
  shape.vocab_size = tiny ? 1024 : 49152;
  shape.context_len_max = 8192;
  shape.rms_epsilon = 1e-5;
  shape.rope_base = 1e5;
  shape.rope_divisors.assign(32, 1.0f);
  shape.tied = true;
  RandomTensors tensors;
  model.token_embedding = tensors.matrix(head, shape.vocab_size, shape.width);
  model.head = model.token_embedding;
  model.final_norm = tensors.ones(shape.width);
  for (std::int64_t l = 0; l < shape.num_layers; ++l) {
    LayerWeights layer;
    layer.attention_norm = tensors.ones(shape.width);
    layer.query = tensors.matrix(body, query_width_of(shape), shape.width);
    layer.key = tensors.matrix(body, kv_width_of(shape), shape.width);
    layer.value = tensors.matrix(body, kv_width_of(shape), shape.width);
    layer.output = tensors.matrix(body, shape.width, query_width_of(shape));
    layer.feed_forward_norm = tensors.ones(shape.width);
    layer.gate = tensors.matrix(body, shape.feed_forward, shape.width);
    layer.up = tensors.matrix(body, shape.feed_forward, shape.width);
    layer.down = tensors.matrix(body, shape.width, shape.feed_forward);
    model.layers.push_back(layer);
  }
  return std::make_shared<const TransformerWeights>(pack_weights(model, threads));
}

}  // namespace draftproof
