// Drafting heads: small networks that read a target's hidden features and draft what follows.
//
//   pairs     eagle1, eagle3, mtp   the pair (state of token i, embedding of token i + 1) at RoPE position i predicts
//                                   token i + 2; its own output is the next state
//   parallel  medusa                head d reads the state of token i and predicts token i + 1 + d (d from 1)
//             peagle                eagle3's pair, and behind it pairs (state of mask_hidden, embedding of the mask
//                                   token), the d-th of which predicts token i + 2 + d: all in one causal pass
//             dflash                a block of mask tokens behind the newest one, all at once, over the states of all
//                                   tokens before
//
// The state of a token is what the head makes of the target's features of it. EAGLE-1 2401.15077, EAGLE-2 2406.16858,
// EAGLE-3 2503.01840, Medusa 2401.10774, MTP 2412.19437 (section 2.2), DFlash 2602.06036, DSpark 2607.05147,
// DFlash 2 z-lab/dflash, P-EAGLE 2602.01469.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.hpp"
#include "engine/transformer/transformer_weights.hpp"
#include "engine/weights/model_weights.hpp"

namespace draftproof {

enum class HeadFamily : std::uint8_t { eagle1, eagle3, mtp, dflash, medusa, peagle };

std::string_view name_of(HeadFamily family);
inline bool drafts_in_parallel(HeadFamily family) {
  return family == HeadFamily::dflash || family == HeadFamily::medusa || family == HeadFamily::peagle;
}

// Does the first layer read an embedding and a state side by side?
inline bool joins_pairs(HeadFamily family) {
  return family == HeadFamily::eagle3 || family == HeadFamily::peagle;
}

// Are features fused into the state? Else the state is the feature, and a pair fuses it with its embedding.
inline bool fuses_features(HeadFamily family) {
  return joins_pairs(family) || family == HeadFamily::dflash;
}

// Stands for the target's last norm among feature layers, which are counted from 1 (ForwardBatch::hidden_layers).
inline constexpr std::int32_t kLastNorm = 0;

struct HeadDescription {
  HeadFamily family = HeadFamily::eagle3;
  std::string format;      // whose files it came in: "speculators", "EAGLE", "DFlash", "Medusa", "MTP", "GGUF"
  ModelDescription shape;  // of its layers; vocab_size: rows of its logits. Of Medusa only widths and vocab_size
  std::int64_t target_width = 0;
  std::int64_t target_vocab_size = 0;        // 0: the file does not say
  std::int64_t target_layers = 0;            // 0: the file does not say
  std::vector<std::int32_t> feature_layers;  // ascending, or {kLastNorm}; empty: the family's rule (feature_layers_of)
  // The target's token of each row of logits, ascending; empty: row t is token t.
  std::vector<Token> draft_tokens;

  bool norm_before_residual = false;  // eagle3: the normed state is the residual stream's beginning
  bool norm_output = false;           // pairs: the next state is the output after out_norm
  bool zero_first_embedding = false;  // mtp of DeepSeek: the embedding of the pair at position 0 is 0
  // dflash: the newest token and block_len - 1 masks. from_anchor: its own place predicts the next token too (DSpark).
  std::int32_t block_len = 0;
  Token mask_token = 0;  // of peagle too
  bool from_anchor = false;
  std::int32_t select_top_k = 0;  // DFlash 2: drafts are among a row's best so many tokens; 0: all
  std::int32_t trained_len = 0;   // drafts that it was trained for; 0: the files do not say

  // Settings of speculators' proposal methods: a draft among the target's best verifier_accept_k, or within a distance
  // of log-likelihood, is accepted. Others than 1 and 0 are lossy.
  std::int64_t verifier_accept_k = 1;
  double accept_tolerance = 0.0;

  bool is_lossy() const { return verifier_accept_k != 1 || accept_tolerance != 0.0; }
};

// The layers whose features a head reads, of a target with this many layers, counted from 1, the last norm being
// num_layers + 1. Where its files do not say: {2, L / 2, L - 3} of EAGLE-3, the last norm of EAGLE-1, Medusa and MTP,
// 1 + round(1 + i (L - 4) / (n - 1)) of DFlash with n layers (halves to even), 1 + L / 2 with one. Error (input) at
// `where`: a layer that the target has not, layers that do not rise.
std::vector<std::int32_t> feature_layers_of(const HeadDescription& head, std::int64_t num_layers,
                                            const std::string& where);

// One head of Medusa: x = x + silu(W x + b) for every block, then logits = M x.
struct MedusaTensors {
  struct Block {
    WeightTensor weight, bias;  // [width, width], [width] or nothing
  };
  std::vector<Block> blocks;
  WeightTensor head;            // [rows of logits, width]; nothing: the target's
  WeightTensor head_bias = {};  // [rows of logits] or nothing
  bool is_plain = false;        // no residual around the block
};

// A head's tensors, whatever files they came from. What is not there is empty.
struct HeadTensors {
  HeadDescription description;
  std::string path;
  WeightTensor embedding;    // [V, width]; nothing: the target's
  WeightTensor embed_norm;   // [width] eagle3, mtp
  WeightTensor hidden_norm;  // [width] eagle3: of the state; mtp: of the feature; dflash: of the fused features
  // Norm of features before they are fused: eagle3's norm_before_fc is one over all of them, [features * target width];
  // EAGLE 3.1's fc_norm is one for each.
  WeightTensor fuse_norm;
  std::vector<WeightTensor> feature_norms;
  WeightTensor fuse;       // eagle1, mtp: [width, 2 * width], of (embedding, state); eagle3, dflash: [width, features]
  WeightTensor fuse_bias;  // [width]
  WeightTensor mask_hidden;          // [1, 1, features] of peagle: in place of a token's features
  std::vector<LayerWeights> layers;  // query, key and value of eagle3's first layer are 2 * width wide
  struct Convolution {
    WeightTensor base, kernel;
  };
  std::vector<std::array<Convolution, 2>> convolutions;  // by layer, of attention and network, as LayerConvolutions
  WeightTensor out_norm;                                 // [width]
  // [rows of logits, width], or [V, width], of which the draft vocabulary's are taken; nothing: the target's.
  WeightTensor head;
  std::vector<MedusaTensors> medusa;
  WeightTensor markov_in;    // [V, rank] DSpark, DFlash 2: row of the token before
  WeightTensor markov_gate;  // [rank, width] DFlash 2: of the place's state, which that row is multiplied by
  WeightTensor markov_out;   // [rows of logits, or V, rank], added to the logits
  WeightTensor confidence;   // [1, width + rank or width]
  WeightTensor confidence_bias;
  std::shared_ptr<const void> owner;
};

// The same as the kernels read it.
struct HeadWeights {
  HeadDescription description;
  std::shared_ptr<const PackedMatrix> embedding;  // null: the target's
  std::vector<float> embed_norm, hidden_norm, fuse_norm;
  std::vector<std::vector<float>> feature_norms;
  std::shared_ptr<const PackedMatrix> fuse;  // null: the state is the feature
  std::vector<float> fuse_bias, mask_hidden;
  TransformerWeights body;  // its layers, the last norm, the head; embedding is null, head where it is the target's
  std::vector<LayerConvolutions> convolutions;  // by layer; empty: none
  struct Medusa {
    struct Block {
      std::shared_ptr<const PackedMatrix> weight;
      std::vector<float> bias;
    };
    std::vector<Block> blocks;
    std::shared_ptr<const PackedMatrix> head;  // null: the target's
    std::vector<float> head_bias;              // empty: none
    bool is_plain = false;
  };
  std::vector<Medusa> medusa;
  std::shared_ptr<const PackedMatrix> markov_in, markov_gate, markov_out;
  std::vector<float> confidence;  // empty: it has none
  float confidence_bias = 0.0f;
};

// The rows of an lm_head that a head drafts from: itself, or of all tokens' rows those of the draft vocabulary.
std::shared_ptr<const PackedMatrix> drafted_rows(const std::shared_ptr<const PackedMatrix>& lm_head,
                                                 const HeadDescription& head, int threads);

// bits: matrices are rounded again, as in requantise(); 0: they stay. Errors (input): a value that is not finite,
// naming the tensor; a size that the kernels do not take; (usage) bits outside 2 to 8.
HeadWeights pack_head(const HeadTensors& tensors, int bits, int threads);

}  // namespace draftproof
