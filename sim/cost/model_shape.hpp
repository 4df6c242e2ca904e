// The shape of a decoder as far as its cost goes: what a pass reads, computes and caches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace draftproof {

struct ModelShape {
  std::string name;
  std::string source;      // of the figures
  std::string assumption;  // empty; else what was assumed of a model that no preset has

  double layers = 0.0;
  double width = 0.0;
  double heads = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  double vocab = 0.0;
  double native_bits = 16.0;  // of the weights as their authors publish them
  bool tied = false;          // the head is the embedding table

  // Mixture of experts; 0 experts: dense.
  double experts = 0.0;
  double experts_per_token = 0.0;
  double expert_layers = 0.0;  // layers that have experts

  double kv_layers = 0.0;  // that cache keys and values; fewer than layers in hybrids
  double kv_values = 0.0;  // numbers that such a layer caches of one token
  // Numbers of a request's recurrent state (Mamba, linear attention), all layers together: as many at any length.
  double state_values = 0.0;

  // Parameters. A token passes through body, head and experts_per_token experts of every layer that has them.
  double body_parameters = 0.0;       // attention, dense or shared feed-forward, routers, all layers together
  double expert_parameters = 0.0;     // of one expert of one layer
  double head_parameters = 0.0;       // width x vocab
  double embedding_parameters = 0.0;  // of a table of its own: in memory, but a pass reads a row of it only

  bool is_moe() const { return experts > 0.0; }
  double total_parameters() const {
    return body_parameters + head_parameters + embedding_parameters + experts * expert_layers * expert_parameters;
  }
  double active_parameters() const {
    return body_parameters + head_parameters + experts_per_token * expert_layers * expert_parameters;
  }
  double kv_values_per_token() const { return kv_layers * kv_values; }
};

// A preset by a name as people write it, a TOML file of one [model] (fields as in sim/presets/models), a config.json
// of Hugging Face, or a folder that holds one. Input error for an unknown name, with the nearest ones, and for a file
// whose shape is incomplete or contradictory.
ModelShape find_model(const std::string& name_or_path);
// The preset alone; nothing where no preset matches.
std::optional<ModelShape> match_model(const std::string& name);
std::vector<std::string> model_preset_names();
// A typical shape for the number of parameters in a name as "13B", "30B-A3B" or "8x7B", which `assumption` then says;
// nothing where the name has none.
std::optional<ModelShape> guess_model(const std::string& name);
// `path` is for messages.
ModelShape model_from_config_json(const std::string& text, const std::string& path);

}  // namespace draftproof
