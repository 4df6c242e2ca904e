// Description of a head from its GGUF metadata, before a weight is read: head_config.hpp for llama.cpp's files.
#pragma once

#include "engine/heads/head_config.hpp"

namespace draftproof {

// Is this the file of a head: architecture eagle3 or dflash, or a block of nextn_predict_layers?
bool describes_head(const GgufFile& file);

// Input errors naming file and key, as of read_head_config().
HeadConfig read_head_metadata(const GgufFile& file, const TensorCollector& tensors);

}  // namespace draftproof
