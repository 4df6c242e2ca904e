// Which layer is of which kind.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/cost/config_keys.hpp"
#include "sim/cost/model_layers.hpp"

namespace draftproof {

inline constexpr std::size_t kLayersMost = 2000;

struct BlockKind {
  Mixer mixer;
  bool has_ffn;
  bool has_experts;
};

// Experts of a layer; 0 where it has none, of which a class may write a number all the same.
double experts_of(const ConfigKeys& config);
// DeepSeek-V4: tokens of a compressed entry of this layer, by a list or by the layers' words; 0: it has none.
double compression_of(const ConfigKeys& config, std::size_t layer);
bool is_compressed(const ConfigKeys& config);
// Zamba: is Mamba all that most layers are, the others with a shared block?
bool shares_blocks(const ConfigKeys& config);

// Input error naming the config and the key: a list that is too short, a kind that is not known.
std::vector<BlockKind> read_layer_kinds(const ConfigKeys& config);

}  // namespace draftproof
