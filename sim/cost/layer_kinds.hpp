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

// Input error naming the config and the key: a list that is too short, a kind that is not known.
std::vector<BlockKind> read_layer_kinds(const ConfigKeys& config);

}  // namespace draftproof
