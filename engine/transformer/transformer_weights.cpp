#include "engine/transformer/transformer_weights.hpp"

#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/parallel.hpp"

namespace draftproof {
namespace {

void check_multiple(const char* what, std::int64_t value, std::int64_t of) {
  if (value < of || value % of != 0)
    throw input_error(
        "", std::string(what) + " is " + std::to_string(value) + "; expected a multiple of " + std::to_string(of));
}

void check_sizes(const ModelDescription& shape) {
  check_multiple("the width", shape.width, 32);
  check_multiple("the feed-forward width", shape.feed_forward, 32);
  check_multiple("the length of a head", shape.head_size, 16);
  check_multiple("the width of all heads", query_width_of(shape), 32);
  if (shape.context_len_max > (1 << 20))
    throw input_error("",
                      "the context has " + std::to_string(shape.context_len_max) + " tokens; expected at most 2^20");
}

std::shared_ptr<const PackedMatrix> packed(const WeightTensor& tensor, int threads,
                                           const std::shared_ptr<WeightArena>& arena) {
  return std::make_shared<const PackedMatrix>(tensor.name, tensor.kind, tensor.rows, tensor.columns, tensor.bytes,
                                              threads, arena);
}

// Makes the matrices of a model in one piece of memory.
class Packer {
 public:
  Packer(const ModelWeights& model, int threads) : threads_(threads) {
    std::size_t bytes = bytes_of(model.token_embedding) + bytes_of(model.head);
    for (const LayerWeights& layer : model.layers)
      for (const WeightTensor* tensor :
           {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate, &layer.up, &layer.down})
        bytes += bytes_of(*tensor);
    arena_ = std::make_shared<WeightArena>(bytes);
  }

  std::shared_ptr<const PackedMatrix> matrix(const WeightTensor& tensor) const {
    return packed(tensor, threads_, arena_);
  }

 private:
  static std::size_t bytes_of(const WeightTensor& tensor) {
    return PackedMatrix::bytes_of(tensor.kind, tensor.rows, tensor.columns);
  }

  int threads_;
  std::shared_ptr<WeightArena> arena_;
};

// matrix(tensor) packs one.
template <class Matrix>
PackedLayer layer_of(const LayerWeights& layer, const Matrix& matrix) {
  PackedLayer out;
  out.attention_norm = finite_values(layer.attention_norm);
  out.query = matrix(layer.query);
  out.key = matrix(layer.key);
  out.value = matrix(layer.value);
  out.query_bias = finite_values(layer.query_bias);
  out.key_bias = finite_values(layer.key_bias);
  out.value_bias = finite_values(layer.value_bias);
  out.query_norm = finite_values(layer.query_norm);
  out.key_norm = finite_values(layer.key_norm);
  out.attention_out = matrix(layer.output);
  out.feed_forward_norm = finite_values(layer.feed_forward_norm);
  const auto pack_network = [&](const auto& network, auto& packed) {
    packed.gate = matrix(network.gate);
    packed.up = matrix(network.up);
    packed.down = matrix(network.down);
  };
  if (layer.gate.is_there()) pack_network(layer, out);
  if (!layer.router.is_there()) return out;
  out.mixture.router = matrix(layer.router);
  out.mixture.router_bias = finite_values(layer.router_bias);
  if (layer.shared_gate.is_there()) out.mixture.shared_gate = matrix(layer.shared_gate);
  for (const LayerWeights::Expert& expert : layer.experts) pack_network(expert, out.mixture.experts.emplace_back());
  return out;
}

// A matrix in another kind, rounded row by row.
std::shared_ptr<const PackedMatrix> rounded(const PackedMatrix& matrix, TensorKind kind, int threads,
                                            const std::shared_ptr<WeightArena>& arena) {
  const auto row_bytes = static_cast<std::size_t>(encoded_bytes(kind, matrix.columns()));
  std::vector<std::byte> bytes(row_bytes * static_cast<std::size_t>(matrix.rows()));
  parallel_for(matrix.rows(), threads, [&](std::int64_t r, int) {
    std::vector<float> values(static_cast<std::size_t>(matrix.columns()));
    matrix.decode_row(r, values);
    encode_blocks(kind, values, std::span(bytes).subspan(static_cast<std::size_t>(r) * row_bytes, row_bytes));
  });
  return std::make_shared<const PackedMatrix>("a requantised tensor", kind, matrix.rows(), matrix.columns(), bytes,
                                              threads, arena);
}

// Rounds the matrices of a model to another kind, in one piece of memory.
class Rounder {
 public:
  Rounder(const TransformerWeights& weights, TensorKind kind, int threads) : kind_(kind), threads_(threads) {
    std::size_t bytes = bytes_of(*weights.embedding) + bytes_of(*weights.head);
    for (const PackedLayer& l : weights.layers)
      for (const auto* matrix : {&l.query, &l.key, &l.value, &l.attention_out, &l.gate, &l.up, &l.down})
        bytes += bytes_of(**matrix);
    arena_ = std::make_shared<WeightArena>(bytes);
  }

  std::shared_ptr<const PackedMatrix> rounded(const PackedMatrix& matrix) const {
    return draftproof::rounded(matrix, kind_, threads_, arena_);
  }

 private:
  std::size_t bytes_of(const PackedMatrix& matrix) const {
    return PackedMatrix::bytes_of(kind_, matrix.rows(), matrix.columns());
  }

  TensorKind kind_;
  int threads_;
  std::shared_ptr<WeightArena> arena_;
};

}  // namespace

std::size_t TransformerWeights::bytes_per_pass() const {
  std::size_t bytes = head->bytes();
  for (const PackedLayer& l : layers)
    for (const auto* matrix : {&l.query, &l.key, &l.value, &l.attention_out, &l.gate, &l.up, &l.down})
      bytes += (*matrix)->bytes();
  return bytes;
}

std::int64_t TransformerWeights::weights_per_pass(std::span<const std::int64_t> of_layers) const {
  std::int64_t weights = head->rows() * head->columns();
  for (const std::int64_t layer : of_layers) {
    const PackedLayer& l = layers[static_cast<std::size_t>(layer)];
    for (const auto* matrix : {&l.query, &l.key, &l.value, &l.attention_out, &l.gate, &l.up, &l.down})
      weights += (*matrix)->rows() * (*matrix)->columns();
  }
  return weights;
}

PackedLayer pack_layer(const LayerWeights& layer, int threads) {
  return layer_of(layer, [&](const WeightTensor& tensor) { return packed(tensor, threads, nullptr); });
}

std::shared_ptr<const PackedMatrix> pack_matrix(const WeightTensor& tensor, int threads) {
  return packed(tensor, threads, nullptr);
}

std::vector<float> finite_values(const WeightTensor& tensor) {
  if (!tensor.is_there()) return {};
  std::vector<float> values = ModelWeights::values_of(tensor);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw input_error(tensor.name, "value " + std::to_string(i) + " is not finite; expected a number");
  return values;
}

TransformerWeights pack_weights(const ModelWeights& model, int threads) {
  check_sizes(model.description);
  TransformerWeights out;
  out.shape = model.description;
  const Packer packer(model, threads);
  for (const LayerWeights& layer : model.layers)
    out.layers.push_back(layer_of(layer, [&](const WeightTensor& tensor) { return packer.matrix(tensor); }));
  out.out_norm = finite_values(model.final_norm);
  out.embedding = packer.matrix(model.token_embedding);
  out.head = model.description.tied ? out.embedding : packer.matrix(model.head);
  return out;
}

TensorKind kind_for_bits(int bits) {
  if (bits < 2 || bits > 8)
    throw usage_error("bits", "is " + std::to_string(bits) + "; expected a number of bits from 2 to 8");
  return bits == 8 ? TensorKind::q8_0 : bits == 4 ? TensorKind::q4_0 : kind_of_bits(bits);
}

std::shared_ptr<const PackedMatrix> round_matrix(const PackedMatrix& matrix, TensorKind kind, int threads) {
  return rounded(matrix, kind, threads, nullptr);
}

TransformerWeights requantise(const TransformerWeights& weights, int bits, int threads) {
  const TensorKind kind = kind_for_bits(bits);
  TransformerWeights out = weights;
  const Rounder rounder(weights, kind, threads);
  for (PackedLayer& layer : out.layers)
    for (auto* matrix :
         {&layer.query, &layer.key, &layer.value, &layer.attention_out, &layer.gate, &layer.up, &layer.down})
      *matrix = rounder.rounded(**matrix);
  out.embedding = rounder.rounded(*weights.embedding);
  out.head = weights.head == weights.embedding ? out.embedding : rounder.rounded(*weights.head);
  return out;
}

}  // namespace draftproof
