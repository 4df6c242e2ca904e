// The figures by which files describe a model, before its parameters are counted from them.
#pragma once

#include <string>

#include "sim/cost/model_shape.hpp"

namespace draftproof {

struct ModelFields {
  std::string name;
  std::string source;
  double layers = 0.0;
  double width = 0.0;
  double heads = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  double ffn = 0.0;   // of layers without experts
  bool gated = true;  // three matrices in a feed-forward, not two
  double vocab = 0.0;
  bool tied = false;
  double experts = 0.0;
  double experts_per_token = 0.0;
  double expert_ffn = 0.0;
  double shared_ffn = 0.0;
  double expert_layers = -1.0;  // -1: all, if there are experts
  double kv_layers = -1.0;      // -1: all
  double kv_values = -1.0;      // -1: keys and values of all KV heads
  double native_bits = 16.0;
  double parameters = 0.0;  // of everything, where the figures above do not give them (latent attention, hybrids)
};

// Counts the parameters. Input error at `where` if the figures contradict one another.
ModelShape shape_of(const ModelFields& fields, const std::string& where);

}  // namespace draftproof
