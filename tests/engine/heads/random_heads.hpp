// Heads of random weights for the tiny Llama of random_tensors.hpp.
#pragma once

#include "engine/heads/draft_head.hpp"
#include "tests/engine/transformer/random_tensors.hpp"

namespace draftproof::testing {

struct RandomHeadOptions {
  std::uint64_t seed = 1;
  TensorKind kind = TensorKind::q8_0;
  bool reduced_vocabulary = true;
  bool token_map = false;  // the reduced vocabulary's rows are the target's
  bool own_embedding = false;
  bool norm_before_residual = false;
  bool norm_output = false;
  bool fuse_norm = false;             // of eagle3: one over all features
  bool feature_norms = false;         // of eagle3: one for each
  bool zero_first_embedding = false;  // of mtp
  bool from_anchor = false;           // of dflash
  bool markov = false;                // of dflash, from the anchor
  bool selector = false;              // of dflash: DFlash 2
  bool plain = false;                 // of medusa: linear layers, with biases
  bool shared_head = false;           // of medusa: one lm_head for all
  std::int64_t layers = 1;            // of each head of medusa: blocks
  ExpertShape experts = {};           // in every layer
};

struct RandomHead {
  HeadTensors tensors;
  TensorStore store;

  RandomHead(HeadFamily family, const ModelDescription& target, const RandomHeadOptions& options = {})
      : store(options.seed) {
    HeadDescription& head = tensors.description;
    head.family = family;
    head.format = "test";
    head.target_width = target.width;
    head.norm_before_residual = options.norm_before_residual;
    head.norm_output = options.norm_output;
    head.zero_first_embedding = options.zero_first_embedding;
    ModelDescription& shape = head.shape;
    shape = target;
    shape.num_layers = family == HeadFamily::medusa ? 0 : options.layers;
    shape.num_heads = 4;
    shape.num_kv_heads = 2;
    shape.head_size = 16;
    shape.feed_forward = 64;
    shape.experts = options.experts;
    if (options.reduced_vocabulary) {
      for (Token t = 2; t < target.vocab_size; t += 3) head.draft_tokens.push_back(t);
      shape.vocab_size = static_cast<std::int64_t>(head.draft_tokens.size());
    }
    const std::int64_t width = target.width;
    const std::int64_t query_width = shape.num_heads * shape.head_size;
    const std::int64_t kv_width = shape.num_kv_heads * shape.head_size;
    const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns) {
      return store.matrix(name, options.kind, rows, columns);
    };
    const auto norm = [&](const char* name) { return store.vector(name, width, 1.5f, 0.2f); };
    if (joins_pairs(family)) head.feature_layers = {1, 2, 3};
    if (family == HeadFamily::dflash) head.feature_layers = {1, 3};
    const auto features = static_cast<std::int64_t>(std::max<std::size_t>(1, head.feature_layers.size()));
    if (options.own_embedding) tensors.embedding = matrix("embed", target.vocab_size, width);
    if (joins_pairs(family) || family == HeadFamily::mtp) tensors.embed_norm = norm("embed_norm");
    if (fuses_features(family) || family == HeadFamily::mtp) tensors.hidden_norm = norm("hidden_norm");
    if (options.fuse_norm) tensors.fuse_norm = store.vector("fuse_norm", features * width, 1.5f, 0.2f);
    for (std::int64_t i = 0; options.feature_norms && i < features; ++i)
      tensors.feature_norms.push_back(norm("feature_norm"));
    if (family == HeadFamily::eagle1 || family == HeadFamily::mtp) tensors.fuse = matrix("fc", width, 2 * width);
    if (fuses_features(family)) tensors.fuse = matrix("fc", width, features * width);
    if (family == HeadFamily::peagle) {
      tensors.mask_hidden = store.vector("mask_hidden", features * width, 0.0f, 1.0f);
      head.mask_token = 4;
    }
    if (family == HeadFamily::eagle1) tensors.fuse_bias = store.vector("fc.bias", width, 0.0f, 0.1f);
    for (std::int64_t l = 0; l < shape.num_layers; ++l) {
      LayerWeights layer;
      const std::int64_t columns = joins_pairs(family) && l == 0 ? 2 * width : width;
      if (family == HeadFamily::mtp || family == HeadFamily::dflash) layer.attention_norm = norm("attention_norm");
      layer.query = matrix("q", query_width, columns);
      layer.key = matrix("k", kv_width, columns);
      layer.value = matrix("v", kv_width, columns);
      if (family == HeadFamily::dflash) {
        layer.query_norm = store.vector("query_norm", shape.head_size, 1.5f, 0.2f);
        layer.key_norm = store.vector("key_norm", shape.head_size, 1.5f, 0.2f);
      }
      layer.output = matrix("o", width, query_width);
      layer.feed_forward_norm = norm("feed_forward_norm");
      const auto fill = [&](auto& network, std::int64_t feed_forward) {
        network.gate = matrix("gate", feed_forward, width);
        network.up = matrix("up", feed_forward, width);
        network.down = matrix("down", width, feed_forward);
      };
      if (shape.experts.count == 0 || shape.experts.shared != 0) fill(layer, shape.feed_forward);
      if (shape.experts.count != 0) {
        layer.router = store.matrix("router", TensorKind::f32, shape.experts.count, width);
        if (shape.experts.by_sigmoid)
          layer.router_bias = store.vector("router.bias", shape.experts.count, 0.0f, 0.3f);
        else if (shape.experts.shared != 0)
          layer.shared_gate = store.matrix("shared_gate", TensorKind::f32, 1, width);
      }
      for (std::int64_t e = 0; e < shape.experts.count; ++e)
        fill(layer.experts.emplace_back(), shape.experts.feed_forward);
      tensors.layers.push_back(layer);
    }
    if (family != HeadFamily::eagle1 && family != HeadFamily::medusa) tensors.out_norm = norm("out_norm");
    if (options.reduced_vocabulary && !options.token_map && (family != HeadFamily::medusa || options.shared_head))
      tensors.head = matrix("lm_head", shape.vocab_size, width);
    if (family == HeadFamily::dflash) {
      head.block_len = 5;
      head.mask_token = 3;
      head.from_anchor = options.markov || options.from_anchor;
      if (options.markov) {
        tensors.markov_in = matrix("markov_w1", target.vocab_size, 32);
        tensors.markov_out = matrix("markov_w2", shape.vocab_size, 32);
        tensors.confidence = store.vector("confidence", width + 32, 0.0f, 0.1f);
        tensors.confidence_bias = store.vector("confidence.bias", 1, 0.5f, 0.1f);
      }
    }
    if (options.selector) {
      head.select_top_k = 12;
      tensors.markov_in = matrix("predecessors", target.vocab_size, 32);
      tensors.markov_out = matrix("successors", options.token_map ? target.vocab_size : shape.vocab_size, 32);
      tensors.markov_gate = matrix("hidden_projection", 32, width);
      for (std::int64_t l = 0; l < shape.num_layers; ++l) {
        auto& of_layer = tensors.convolutions.emplace_back();
        for (HeadTensors::Convolution& conv : of_layer)  // 3 taps, groups of 16
          conv = {store.vector("base", 2 * 3 * width, 0.5f, 0.3f), matrix("kernel", 2 * 3 * width / 16, width)};
      }
    }
    for (int i = 0; family == HeadFamily::medusa && i < 4; ++i) {
      MedusaTensors& medusa = tensors.medusa.emplace_back();
      for (std::int64_t l = 0; l < options.layers; ++l)
        medusa.blocks.push_back({matrix("block", width, width), store.vector("block.bias", width, 0.0f, 0.1f)});
      if (options.reduced_vocabulary && !options.shared_head) medusa.head = matrix("lm_head", shape.vocab_size, width);
      medusa.is_plain = options.plain;
      if (options.plain) medusa.head_bias = store.vector("lm_head.bias", shape.vocab_size, 0.0f, 0.1f);
    }
  }

  RandomHead(RandomHead&&) = default;  // tensors are views of the store
  RandomHead(const RandomHead&) = delete;

  std::shared_ptr<const HeadWeights> weights(int bits = 0) const {
    return std::make_shared<const HeadWeights>(pack_head(tensors, bits, 1));
  }
  std::shared_ptr<DraftHead> head(const TransformerModel& target, int bits = 0) const {
    return std::make_shared<DraftHead>(weights(bits), target, "test head");
  }
};

// One of every kind, by name.
inline std::vector<std::pair<std::string, RandomHead>> heads_of_every_kind(const ModelDescription& target) {
  std::vector<std::pair<std::string, RandomHead>> heads;
  const auto add = [&](const char* name, HeadFamily family, RandomHeadOptions options = {}) {
    options.seed = heads.size() + 10;
    heads.emplace_back(name, RandomHead(family, target, options));
  };
  add("eagle1", HeadFamily::eagle1, {.reduced_vocabulary = false});
  add("eagle1 of two layers with an lm_head of its own", HeadFamily::eagle1, {.layers = 2});
  add("eagle3", HeadFamily::eagle3);
  add("eagle3 with its switches", HeadFamily::eagle3,
      {.kind = TensorKind::f16, .own_embedding = true, .norm_before_residual = true, .norm_output = true, .layers = 2});
  add("eagle3 with a norm before fc", HeadFamily::eagle3, {.fuse_norm = true});
  add("eagle3 with a norm for each feature", HeadFamily::eagle3, {.norm_output = true, .feature_norms = true});
  add("mtp", HeadFamily::mtp, {.reduced_vocabulary = false, .norm_output = true});
  add("mtp with a token map", HeadFamily::mtp, {.token_map = true, .norm_output = true});
  add("mtp of DeepSeek", HeadFamily::mtp, {.own_embedding = true, .zero_first_embedding = true});
  add("mtp with experts", HeadFamily::mtp,
      {.reduced_vocabulary = false, .norm_output = true, .experts = {.count = 6, .chosen = 2, .feed_forward = 32}});
  add("mtp with experts beside a gated network", HeadFamily::mtp,
      {.reduced_vocabulary = false,
       .norm_output = true,
       .experts = {.count = 5, .chosen = 3, .feed_forward = 32, .shared = 64, .normalised = true}});
  add("mtp with groups of experts", HeadFamily::mtp,
      {.zero_first_embedding = true,
       .experts = {.count = 8,
                   .chosen = 3,
                   .feed_forward = 32,
                   .shared = 64,
                   .by_sigmoid = true,
                   .normalised = true,
                   .scale = 2.5,
                   .groups = 4,
                   .groups_chosen = 2}});
  add("dflash", HeadFamily::dflash, {.layers = 2});
  add("dflash from the anchor", HeadFamily::dflash, {.from_anchor = true});
  add("dspark", HeadFamily::dflash, {.markov = true, .layers = 2});
  add("dflash 2", HeadFamily::dflash, {.reduced_vocabulary = false, .selector = true, .layers = 2});
  add("dflash 2 with a token map, from the anchor", HeadFamily::dflash,
      {.kind = TensorKind::f16, .token_map = true, .from_anchor = true, .selector = true});
  add("medusa", HeadFamily::medusa);
  add("medusa of linear layers", HeadFamily::medusa, {.plain = true});
  add("medusa of two blocks with one lm_head for all", HeadFamily::medusa, {.shared_head = true, .layers = 2});
  add("medusa with the target's lm_head", HeadFamily::medusa, {.reduced_vocabulary = false});
  add("peagle", HeadFamily::peagle);
  add("peagle of two layers", HeadFamily::peagle,
      {.own_embedding = true, .norm_before_residual = true, .feature_norms = true, .layers = 2});
  return heads;
}

}  // namespace draftproof::testing
