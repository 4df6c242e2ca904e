// The layers of a decoder, one by one, from its config's keys: what mixes tokens, what it caches, its feed-forward.
#pragma once

#include <string>
#include <vector>

#include "sim/cost/config_keys.hpp"
#include "sim/cost/model_shape.hpp"

namespace draftproof {

enum class Mixer {
  none,       // a block of a feed-forward alone
  full,       // attention to everything
  sliding,    // to the last tokens
  chunked,    // to the tokens of the same chunk
  parallel,   // attention and Mamba-2 beside each other
  shared,     // a transformer block of weights that several layers share, in front of Mamba (Zamba)
  linear,     // gated delta rule (Qwen3-Next)
  kimi,       // Kimi delta attention
  lightning,  // linear attention with a decay (MiniMax-01, Ling)
  mamba,
  mamba2,
  conv,       // short convolutions (LFM2)
  recurrent,  // RG-LRU (RecurrentGemma)
};

struct Block {
  Mixer mixer = Mixer::none;
  double mixer_parameters = 0.0;
  double ffn_parameters = 0.0;  // dense or shared, and the router
  double again = 0.0;           // of these, that an earlier layer has too: read again, and stored once
  bool has_ffn = true;
  bool has_experts = false;
  std::vector<CacheLayers> cache;  // of this layer
  double state_values = 0.0;
};

struct Experts {
  double count = 0.0;
  double per_token = 0.0;
  double parameters = 0.0;  // of one expert of one layer
};

// Input error naming the config and the key: a figure that is missing or contradicts another, a kind of layer that is
// not known.
Experts read_experts(const ConfigKeys& config);
std::vector<Block> read_blocks(const ConfigKeys& config);

}  // namespace draftproof
