#include "engine/heads/head_weights.hpp"

#include <array>
#include <cmath>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr std::array<std::string_view, 6> kNames{"eagle1", "eagle3", "mtp", "dflash", "medusa", "peagle"};

// To nearest, halves to even, as Python's round().
std::int64_t round_half_even(std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t twice = 2 * numerator + denominator;
  const std::int64_t rounded = twice / (2 * denominator);
  return twice % (2 * denominator) == 0 && rounded % 2 != 0 ? rounded - 1 : rounded;
}

std::vector<std::int32_t> family_layers(const HeadDescription& head, std::int64_t num_layers) {
  std::vector<std::int64_t> layers;
  switch (head.family) {
    case HeadFamily::eagle1:
    case HeadFamily::mtp:
    case HeadFamily::medusa:
      return {kLastNorm};
    case HeadFamily::eagle3:
    case HeadFamily::peagle:
      layers = {2, num_layers / 2, num_layers - 3};
      break;
    case HeadFamily::dflash: {
      const std::int64_t count = head.shape.num_layers;
      if (count == 1) layers = {num_layers / 2 + 1};
      for (std::int64_t i = 0; count > 1 && i < count; ++i)
        layers.push_back(1 + round_half_even(count - 1 + i * (num_layers - 4), count - 1));
      break;
    }
  }
  return {layers.begin(), layers.end()};
}

}  // namespace

std::string_view name_of(HeadFamily family) {
  return kNames[static_cast<std::size_t>(family)];
}

std::vector<std::int32_t> feature_layers_of(const HeadDescription& head, std::int64_t num_layers,
                                            const std::string& where) {
  std::vector<std::int32_t> layers =
      head.feature_layers.empty() ? family_layers(head, num_layers) : head.feature_layers;
  if (layers == std::vector<std::int32_t>{kLastNorm}) return {static_cast<std::int32_t>(num_layers) + 1};
  std::int32_t before = 0;
  for (const std::int32_t layer : layers) {
    if (layer <= before || layer > num_layers)
      throw input_error(where, "reads features behind layer " + std::to_string(layer) + " after " +
                                   std::to_string(before) + "; expected rising layers from 1 to " +
                                   std::to_string(num_layers) + ", those of the target");
    before = layer;
  }
  return layers;
}

std::shared_ptr<const PackedMatrix> drafted_rows(const std::shared_ptr<const PackedMatrix>& lm_head,
                                                 const HeadDescription& head, int threads) {
  if (!lm_head || head.draft_tokens.empty() || lm_head->rows() == std::ssize(head.draft_tokens)) return lm_head;
  return std::make_shared<const PackedMatrix>(lm_head->gathered(head.draft_tokens, threads));
}

HeadWeights pack_head(const HeadTensors& tensors, int bits, int threads) {
  HeadWeights out;
  out.description = tensors.description;
  const auto matrix = [&](const WeightTensor& tensor) -> std::shared_ptr<const PackedMatrix> {
    if (!tensor.is_there()) return nullptr;
    auto packed = pack_matrix(tensor, threads);
    return bits == 0 ? packed : round_matrix(*packed, kind_for_bits(bits), threads);
  };
  // Rows that are looked up are not multiplied with, and stay as they are.
  if (tensors.embedding.is_there()) out.embedding = pack_matrix(tensors.embedding, threads);
  if (tensors.markov_in.is_there()) out.markov_in = pack_matrix(tensors.markov_in, threads);
  out.embed_norm = finite_values(tensors.embed_norm);
  out.hidden_norm = finite_values(tensors.hidden_norm);
  out.fuse_norm = finite_values(tensors.fuse_norm);
  for (const WeightTensor& norm : tensors.feature_norms) out.feature_norms.push_back(finite_values(norm));
  out.fuse = matrix(tensors.fuse);
  out.fuse_bias = finite_values(tensors.fuse_bias);
  out.mask_hidden = finite_values(tensors.mask_hidden);
  out.body.shape = tensors.description.shape;
  for (const LayerWeights& layer : tensors.layers) {
    PackedLayer& packed = out.body.layers.emplace_back(pack_layer(layer, threads));
    if (bits == 0) continue;
    // A router stays as it is.
    std::vector<std::shared_ptr<const PackedMatrix>*> rounded{
        &packed.query, &packed.key, &packed.value, &packed.attention_out, &packed.gate, &packed.up, &packed.down};
    for (PackedMixture::Expert& expert : packed.mixture.experts)
      rounded.insert(rounded.end(), {&expert.gate, &expert.up, &expert.down});
    for (auto* const of : rounded)
      if (*of) *of = round_matrix(**of, kind_for_bits(bits), threads);
  }
  for (const auto& [attention, network] : tensors.convolutions)
    out.convolutions.push_back({{finite_values(attention.base), matrix(attention.kernel)},
                                {finite_values(network.base), matrix(network.kernel)}});
  out.body.out_norm = finite_values(tensors.out_norm);
  out.body.head = drafted_rows(matrix(tensors.head), tensors.description, threads);
  for (const MedusaTensors& of : tensors.medusa) {
    HeadWeights::Medusa& head = out.medusa.emplace_back();
    for (const MedusaTensors::Block& block : of.blocks)
      head.blocks.push_back({matrix(block.weight), finite_values(block.bias)});
    head.head = matrix(of.head);
    head.head_bias = finite_values(of.head_bias);
    head.is_plain = of.is_plain;
  }
  out.markov_gate = matrix(tensors.markov_gate);
  const bool looked_up = out.description.select_top_k != 0 && tensors.markov_out.is_there();
  out.markov_out = drafted_rows(looked_up ? pack_matrix(tensors.markov_out, threads) : matrix(tensors.markov_out),
                                tensors.description, threads);
  out.confidence = finite_values(tensors.confidence);
  if (tensors.confidence_bias.is_there()) out.confidence_bias = finite_values(tensors.confidence_bias).front();
  return out;
}

}  // namespace draftproof
