// Drafting heads from files: head_config.hpp says which formats, and what their keys mean.
#pragma once

#include <string>
#include <vector>

#include "engine/heads/head_weights.hpp"

namespace draftproof {

// Is there a drafting head at `path`, by the keys of its config.json or GGUF metadata? Those of EAGLE-1 and MTP in a
// folder look like a model's: then by its tensors, where it has no tokenizer. Input errors: those of opening the files.
bool is_head(const std::string& path);

// How many layers for multi-token prediction (MTP) the files of the model at `path` carry: one is a head, which
// open_head_files() opens at this path; more are not implemented. Input errors: as above.
std::size_t mtp_layers_inside(const std::string& path);

// A head's tensors from a folder (config.json with model.safetensors or shards) or a .gguf file. Every tensor is used
// once; of a target's own files, those of its MTP layer. A d2t table may hold offsets or tokens; its tokens rise and
// stay below the target's vocabulary, and t2d, where there is one, marks the same set. token_map.json in the folder,
// {"token_map": [tokens in any order]}, leaves those of a vocabulary that is the target's (FR-Spec, arXiv:2502.14856).
// Input errors naming file and tensor or key: those of read_head_config(); a tensor that is missing, misshapen, of
// another type, or read by nothing; d2t and t2d that contradict each other or the sizes; a token map of a head with
// another vocabulary, or of tokens that are not the target's.
HeadTensors open_head_files(const std::string& path);

// Every tensor of a head that is there, once.
std::vector<const WeightTensor*> tensors_of(const HeadTensors& head);

// Elements of the matrices that one pass of the head multiplies with: a draft of pairs, a block, all heads of Medusa.
// With the target's matrix of logits where the head has none.
std::int64_t weights_per_pass(const HeadTensors& head);

}  // namespace draftproof
