// A mixture of experts for one token, by one thread: the same bits whatever else is in the batch.
#pragma once

#include <cstdint>
#include <span>

#include "engine/transformer/row_product.hpp"
#include "engine/transformer/transformer_weights.hpp"

namespace draftproof {

struct ExpertRoute {
  std::size_t expert = 0;
  float weight = 0.0f;
};

// row [width] -> the experts of the row, ascending. Of equal scores the first are chosen. Weights are NaN where a logit
// of the router is not finite.
void route_row(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMixture& mixture,
               const ExpertShape& shape, const float* row, std::span<ExpertRoute> routes);

// out [width] = D (silu(G row) * (U row)).
void run_expert(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMixture::Expert& expert,
                const float* row, float* out);

// shared [width]: the shared network's output, multiplied by its gate where it has one; becomes the sum of it and of
// the rows [chosen, width] of the experts, in their order, each by its weight.
void combine_experts(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMixture& mixture,
                     const float* row, std::span<const ExpertRoute> routes, const float* rows, std::span<float> shared);

}  // namespace draftproof
