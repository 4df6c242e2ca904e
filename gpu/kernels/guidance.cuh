// Classifier-free guidance of one logit (twin: reference/logits/guidance.hpp).
#pragma once

#include "gpu/kernels/mass_tile.cuh"
#include "gpu/kernels/parameters.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct GuidedLogit {
  float value;
  bool valid;
};

// l_u + s (l_c - l_u), s not 1. Wrong: +infinity, a token that only the unconditional row masks, a result beyond f32.
__device__ inline GuidedLogit guided_logit(float l_c, float l_u, float scale) {
  const float masked = negative_infinity();
  if (l_c != l_c || l_u != l_u) return {bit_cast<float>(0x7fc00000u), true};
  if (l_c == -masked || l_u == -masked || (l_u == masked && l_c != masked)) return {masked, false};
  if (l_c == masked) return {masked, true};
  const float value = l_u + scale * (l_c - l_u);
  return {value, is_finite(value)};
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
