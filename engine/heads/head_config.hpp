// Description of a head from its files, in whatever format, before a weight is read.
//
//   speculators   vLLM's package: config.json with speculators_model_type and transformer_layer_config
//   EAGLE         SafeAILab/EAGLE and SpecForge: a config of one Llama layer; EAGLE-3 has draft_vocab_size
//   DFlash        z-lab/dflash and SpecForge: architectures DFlashDraftModel, DSparkDraftModel, with dflash_config
//   DeepSpec      deepseek-ai/DeepSpec: architectures Qwen3Eagle3Model, Qwen3DSparkModel
//   Medusa        FasterDecoding/Medusa, and the names that vLLM gives it
//   MTP           the target's config, and mtp.* (Qwen3-Next) or model.layers.L.eh_proj (DeepSeek) among the tensors,
//                 in files of its own or among the target's
//   GGUF          llama.cpp: architectures eagle3 and dflash, or nextn_predict_layers
//
// Layers of features. HeadDescription counts them from 1, behind a layer. speculators' ids and those in GGUF files are
// the same numbers; those of DFlash and DeepSpec count outputs from 0, one less. eagle_aux_hidden_state_layer_ids of
// EAGLE's format are outputs from 0 where the first is 1, else the same numbers, as SGLang reads them (sglang#25454).
//
// A key that no reader knows is refused where its value is true, a number other than 0, or a list or object that is not
// empty: it may change the arithmetic. null, false, 0 and texts pass, and so do keys of training and of generation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/heads/head_weights.hpp"
#include "engine/weights/json_fields.hpp"
#include "engine/weights/tensor_collector.hpp"

namespace draftproof {

// Names of a head's tensors; empty: it has none such.
struct HeadNames {
  const LayerNames* of_layer = &kFolderLayerNames;
  std::string first_layer = {}, later_layers = {};  // prefixes; that of later layers is followed by their number
  std::string embedding = {}, head = {};            // may be missing from the files: then the target's
  std::string embed_norm = {}, hidden_norm = {}, fuse_norm = {}, out_norm = {};
  std::string feature_norms = {};  // prefix, followed by a number and ".weight"
  std::string fuse = {}, fuse_bias = {}, mask_hidden = {};
  std::string markov_in = {}, markov_gate = {}, markov_out = {}, confidence = {}, confidence_bias = {};
};

struct MedusaNames {
  std::string prefix;      // in front of all
  bool is_vllm = true;     // blocks.I.layers.J, lm_heads.I; else I.J.linear, I.N with N blocks
  bool is_plain = false;   // I.0, I.2: linear, SiLU, linear, without the residual around the block
  std::int64_t heads = 0;  // how many
  std::int64_t blocks = 0;
  bool has_bias = false;
  bool shares_head = false;  // one matrix for all heads
};

struct HeadConfig {
  HeadDescription description;
  std::string where;                  // of what it was read from, for messages
  std::int64_t draft_vocab_size = 0;  // rows of logits; 0: the files do not say
  bool draft_tokens_are_ids = false;  // d2t holds tokens; else offsets, token i + d2t[i]
  std::int64_t num_features = 0;      // that are fused
  bool has_first_norm = true;         // the first layer has a norm in front of Q, K and V
  std::optional<bool> has_fuse_bias;  // nothing: where it is among the tensors
  std::int64_t markov_rank = 0;
  std::int64_t conv_taps = 0, conv_group = 0;  // of DFlash 2; 0: no convolutions
  bool confidence_reads_markov = false;
  HeadNames names;
  MedusaNames medusa;
  std::string inside;  // MTP in the target's own files: the prefix of the head's tensors, the others being the target's
};

// Is this the config.json of a head, by its keys alone? Those of EAGLE-1 and MTP look like a model's.
bool describes_head(const JsonFields& config);
// Do the names of its tensors say so?
bool describes_head(const TensorCollector& tensors);

// Input errors naming file and key: no format of the above, or a head that is not implemented (Domino,
// Hydra, ...); a key that is missing, contradicts another or may change the arithmetic.
HeadConfig read_head_config(const JsonFields& config, const TensorCollector& tensors);

// Is `key` one of the words of a list, each with a space on both sides?
bool is_word_of(std::string_view list, std::string_view key);
// Layers counted from 1, of ids that count them `offset` lower. Input error: ids that do not rise from 1 - offset on.
std::vector<std::int32_t> rising_layers(const std::string& where, const std::string& key,
                                        const std::vector<std::int64_t>& ids, std::int64_t offset);
// Input error: a tensor whose name says that the head is of a kind that is not implemented.
void refuse_other_kinds(const TensorCollector& tensors);

}  // namespace draftproof
