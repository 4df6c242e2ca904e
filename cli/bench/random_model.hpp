// A model of the shipped one's sizes whose weights are random: what a pass costs does not depend on them.
#pragma once

#include <memory>

#include "engine/transformer/transformer_weights.hpp"

namespace draftproof {

// SmolLM2-135M's sizes (tiny: a small part of them), matrices of kind `body`, embedding and head of kind `head`.
std::shared_ptr<const TransformerWeights> random_model(TensorKind body, TensorKind head, bool tiny, int threads);

}  // namespace draftproof
