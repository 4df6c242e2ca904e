// The weights of a transformer as the kernels read them. Made once; models and views of them share it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/transformer/packed_matrix.hpp"
#include "engine/weights/model_weights.hpp"

namespace draftproof {

struct PackedMixture {
  struct Expert {
    std::shared_ptr<const PackedMatrix> gate, up, down;
  };
  std::shared_ptr<const PackedMatrix> router;
  std::vector<float> router_bias;                   // empty: none
  std::shared_ptr<const PackedMatrix> shared_gate;  // null: none
  std::vector<Expert> experts;                      // empty: the layer has one network
};

struct PackedLayer {
  std::vector<float> attention_norm;
  std::shared_ptr<const PackedMatrix> query, key, value;
  std::vector<float> query_bias, key_bias, value_bias;  // empty: none
  std::vector<float> query_norm, key_norm;              // empty: none
  std::shared_ptr<const PackedMatrix> attention_out;
  std::vector<float> feed_forward_norm;
  std::shared_ptr<const PackedMatrix> gate, up, down;  // of a mixture the shared network's, or null
  PackedMixture mixture;
};

// DFlash 2's convolutions along a block, of what attention and the network of a layer read and of what they give.
struct PackedConvolution {
  std::vector<float> base;  // [2, taps, width] of inputs and of outputs; tap t reads the token t places before
  // [2 * taps * groups, width] what a token's normed row adds to the taps of a group of columns; null: no convolution.
  std::shared_ptr<const PackedMatrix> kernel;
};
struct LayerConvolutions {
  PackedConvolution attention, network;
};

struct TransformerWeights {
  ModelDescription shape;
  std::shared_ptr<const PackedMatrix> embedding;
  std::vector<float> out_norm;
  std::shared_ptr<const PackedMatrix> head;  // the embedding where that is tied
  std::vector<PackedLayer> layers;

  std::size_t bytes_per_pass() const;  // of the matrices that one pass reads
  // Elements of the matrices that a pass through these layers and the head multiplies with.
  std::int64_t weights_per_pass(std::span<const std::int64_t> of_layers) const;
};

inline std::int64_t query_width_of(const ModelDescription& shape) {
  return shape.num_heads * shape.head_size;
}
inline std::int64_t kv_width_of(const ModelDescription& shape) {
  return shape.num_kv_heads * shape.head_size;
}

// Repacks the tensors of a model whose shapes have been checked (weights_of_gguf, weights_of_folder). Errors (input): a
// value that is not finite, naming the tensor; a size that the kernels do not take (widths in multiples of 32, heads in
// multiples of 16).
TransformerWeights pack_weights(const ModelWeights& model, int threads);

// One layer by itself, each matrix in memory of its own; norms may be missing. Errors (input): as above.
PackedLayer pack_layer(const LayerWeights& layer, int threads);
std::shared_ptr<const PackedMatrix> pack_matrix(const WeightTensor& tensor, int threads);
// Decoded values, all finite; empty where the tensor is not there. Error (input): one that is not, naming the tensor.
std::vector<float> finite_values(const WeightTensor& tensor);

// The kind of block to which matrices are rounded for `bits` bits: Q8_0, Q4_0, or B2 to B7. Error (usage): bits outside
// 2 to 8.
TensorKind kind_for_bits(int bits);
std::shared_ptr<const PackedMatrix> round_matrix(const PackedMatrix& matrix, TensorKind kind, int threads);

// The same matrices, each rounded again to `bits` bits in blocks of 16 (kinds B2 to B8), or with 8 and 4 bits, the
// formats of files, to Q8_0 and Q4_0. Norms and biases are shared as they are. bits: 2 to 8, a usage error else.
TransformerWeights requantise(const TransformerWeights& weights, int bits, int threads);

}  // namespace draftproof
