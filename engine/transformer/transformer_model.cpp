#include "engine/transformer/transformer_model.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace draftproof {
namespace {

std::vector<std::int64_t> all_layers(const TransformerWeights& weights) {
  std::vector<std::int64_t> layers(weights.layers.size());
  std::iota(layers.begin(), layers.end(), std::int64_t{0});
  return layers;
}

}  // namespace

TransformerModel::TransformerModel(const std::shared_ptr<const TransformerWeights>& weights, Arithmetic arithmetic,
                                   int threads, std::optional<Token> start, const TransformerKernels& kernels)
    : TransformerModel(weights, arithmetic, std::make_shared<ThreadTeam>(threads),
                       std::make_shared<RopeTable>(weights->shape), start, kernels, all_layers(*weights)) {}

TransformerModel::TransformerModel(std::shared_ptr<const TransformerWeights> weights, Arithmetic arithmetic,
                                   std::shared_ptr<ThreadTeam> team, std::shared_ptr<RopeTable> rope,
                                   std::optional<Token> start, const TransformerKernels& kernels,
                                   std::vector<std::int64_t> layers)
    : weights_(std::move(weights)),
      arithmetic_(arithmetic),
      team_(std::move(team)),
      rope_(std::move(rope)),
      start_(start),
      kernels_(kernels),
      layers_(std::move(layers)) {}

std::unique_ptr<TransformerModel> TransformerModel::with_layers(const std::vector<std::int64_t>& layers) const {
  const auto count = static_cast<std::int64_t>(weights_->layers.size());
  std::int64_t least = 0;
  for (const std::int64_t layer : layers) {
    if (layer < least || layer >= count)
      throw usage_error("layers", "layer " + std::to_string(layer) +
                                      " is in the list; expected ascending numbers below " + std::to_string(count));
    least = layer + 1;
  }
  return std::unique_ptr<TransformerModel>(
      new TransformerModel(weights_, arithmetic_, team_, rope_, start_, kernels_, layers));
}

std::unique_ptr<TransformerModel> TransformerModel::with_arithmetic(Arithmetic arithmetic) const {
  return std::unique_ptr<TransformerModel>(
      new TransformerModel(weights_, arithmetic, team_, rope_, start_, kernels_, layers_));
}

std::unique_ptr<TransformerModel> TransformerModel::requantised(int bits) const {
  auto weights = std::make_shared<const TransformerWeights>(requantise(*weights_, bits, threads()));
  return std::unique_ptr<TransformerModel>(
      new TransformerModel(std::move(weights), arithmetic_, team_, rope_, start_, kernels_, layers_));
}

std::unique_ptr<KvCache> TransformerModel::make_kv_cache(std::int64_t num_slots) const {
  const ModelDescription& shape = weights_->shape;
  return std::make_unique<TransformerKvCache>(
      KvShape{static_cast<std::int64_t>(weights_->layers.size()), shape.num_kv_heads, shape.head_size}, num_slots);
}

void TransformerModel::forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) {
  auto* const cache = dynamic_cast<TransformerKvCache*>(&kv);
  const ModelDescription& shape = weights_->shape;
  if (cache == nullptr || cache->shape() != KvShape{static_cast<std::int64_t>(weights_->layers.size()),
                                                    shape.num_kv_heads, shape.head_size})
    throw Error(ErrorKind::internal, "forward", "the cache is of another model");
  validate(batch, {.vocab_size = shape.vocab_size,
                   .num_slots = cache->num_slots(),
                   .num_hidden_layers = static_cast<std::int32_t>(num_layers()) + 1});
  std::int64_t positions = 0;
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    if (batch.tokens[i] < 0)
      throw input_error("token " + std::to_string(i) + " of the batch", "it is " + std::to_string(batch.tokens[i]) +
                                                                            "; expected one in [0, " +
                                                                            std::to_string(shape.vocab_size) + ")");
    positions = std::max(positions, std::int64_t{batch.positions[i]} + 1);
  }
  if (positions > shape.context_len_max)
    throw input_error("batch", "it has a token at position " + std::to_string(positions - 1) + "; expected one below " +
                                   std::to_string(shape.context_len_max) + ", the context length of the model");
  rope_->extend(positions);
  pass_.run({*weights_, layers_, arithmetic_, kernels_, *rope_, *team_}, batch, *cache, out);
}

}  // namespace draftproof
