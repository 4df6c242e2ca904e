// The shape of a decoder as far as its cost goes: what a pass reads, computes and caches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cost/gpu.hpp"

namespace draftproof {

// Layers that cache alike. A layer may be in several: compressed entries beside a window, keys of an indexer.
struct CacheLayers {
  double layers = 0.0;
  double values = 0.0;     // numbers of an entry
  double window = 0.0;     // tokens that are kept; 0: all
  double stride = 1.0;     // tokens of an entry: 4 where every 4 tokens are compressed into one
  double read_most = 0.0;  // entries that a row attends to at most (sparse attention); 0: all
  double products = 0.0;   // multiplications of a row with an entry: heads x (length of a key + of a value)
  double parts = 1.0;      // GPUs that an entry can lie on in parts: its KV heads; one of latent attention

  // Values of an entry in all these layers, on all GPUs that share them.
  double values_on(double gpus) const { return layers * values * (gpus > parts ? gpus / parts : 1.0); }
  double kept(double context) const { return (window > 0.0 && window < context ? window : context) / stride; }
  double read(double context) const {
    const double entries = kept(context);
    return read_most > 0.0 && read_most < entries ? read_most : entries;
  }
};

struct ModelShape {
  std::string name;
  std::string source;      // of the figures
  std::string assumption;  // empty; else what was assumed of a model that no preset has

  double layers = 0.0;  // of a mixer and a feed-forward each; blocks of one of them count half
  double width = 0.0;
  double heads = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  double vocab = 0.0;
  bool tied = false;    // the head is the embedding table
  Precision precision;  // of the weights as the checkpoint has them

  // Mixture of experts; 0 experts: dense.
  double experts = 0.0;
  double experts_per_token = 0.0;
  double expert_layers = 0.0;  // layers that have experts

  double draft_layers = 0.0;  // of multi-token prediction, beside the others; 0: not said

  std::vector<CacheLayers> cache;
  // Numbers of a request's recurrent state (Mamba, linear attention), all layers together: as many at any length.
  double state_values = 0.0;

  // Parameters. A token passes through body, head and experts_per_token experts of every layer that has them.
  double body_parameters = 0.0;       // attention, dense or shared feed-forward, routers, all layers together
  double again_parameters = 0.0;      // of the body, that several layers share: read by each, and stored once
  double expert_parameters = 0.0;     // of one expert of one layer
  double head_parameters = 0.0;       // width x vocab
  double embedding_parameters = 0.0;  // of tables of their own: in memory, but a pass reads a row of them only

  bool is_moe() const { return experts > 0.0; }
  double total_parameters() const {
    return body_parameters - again_parameters + head_parameters + embedding_parameters +
           experts * expert_layers * expert_parameters;
  }
  double active_parameters() const {
    return body_parameters + head_parameters + experts_per_token * expert_layers * expert_parameters;
  }
  // Numbers that a request of so many tokens caches, and of these what its next row reads.
  // On `gpus` that share a layer, an entry of fewer parts lies on several of them, and each reads it.
  double cached_values(double context, double gpus = 1.0) const;
  double read_values(double context, double gpus = 1.0) const;
  // Multiplications of a row that attends to so many tokens.
  double attention_products(double context) const;
  // The cache of one layer of full attention.
  CacheLayers full_layer() const;
};

// A preset by a name as people write it, a TOML file of one [model] (keys as in sim/presets/models), a config.json of
// Hugging Face, or a folder that holds one. Input error for an unknown name, with the nearest ones, and for a file
// whose shape is incomplete or contradictory.
ModelShape find_model(const std::string& name_or_path);
// The preset alone; nothing where no preset matches.
std::optional<ModelShape> match_model(const std::string& name);
std::vector<std::string> model_preset_names();
// A typical shape for the number of parameters in a name as "13B", "30B-A3B" or "8x7B", which `assumption` then says;
// nothing where the name has none.
std::optional<ModelShape> guess_model(const std::string& name);
// `path` is for messages; `quantisation`: text of a description beside the config (quantization.hpp), or empty.
ModelShape model_from_config_json(const std::string& text, const std::string& path,
                                  const std::string& quantisation = "");

}  // namespace draftproof
