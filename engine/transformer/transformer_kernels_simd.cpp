// The kernels of a forward pass in Google Highway, compiled once per instruction set: attention and element-wise loops
// here, products in simd_*.hpp and, of int8 rows, in int8_product_*.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/transformer/transformer_kernels_simd.cpp"
#include <hwy/foreach_target.h>
// Highway's own header order: foreach_target before highway.
#include <hwy/highway.h>

#include <cstring>
#include <optional>

#include "engine/transformer/simd_attention.hpp"
#include "engine/transformer/simd_float_product.hpp"
#include "engine/transformer/simd_rows.hpp"
#include "engine/transformer/transformer_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace draftproof {
namespace HWY_NAMESPACE {

#if !DRAFTPROOF_TRANSFORMER_TARGET
TransformerKernels transformer_kernels_of_target() {
  TransformerKernels kernels = scalar_transformer_kernels();
  if (int8_product_wasm() != nullptr) kernels.int8_product = int8_product_wasm();
  return kernels;
}
#else
TransformerKernels transformer_kernels_of_target() {
  Int8Product product = nullptr;
#if HWY_TARGET == HWY_AVX3
  product = int8_product_avx512_vnni();
#endif
  if (product == nullptr) product = int8_product_avx2();
  if (product == nullptr) product = scalar_transformer_kernels().int8_product;
  return {hwy::TargetName(HWY_TARGET),
          quantise,
          product,
          float_product,
          rms_norm,
          swiglu,
          add,
          tile_scores,
          softmax,
          tile_values,
          scale,
          to_f16,
          all_finite};
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace draftproof
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_targets.hpp"

namespace draftproof {

namespace {

// Highway has no target for AVX2 with AVX-VNNI: its kernels but for the products.
std::optional<TransformerKernels> with_avxvnni(TransformerKernels kernels) {
  if (std::strcmp(kernels.target, "AVX2") != 0 || int8_product_avxvnni() == nullptr) return std::nullopt;
  kernels.target = "AVX2_VNNI";
  kernels.int8_product = int8_product_avxvnni();
  return kernels;
}

}  // namespace

std::vector<TransformerKernels> available_transformer_kernels() {
  auto sets = kernels_of_every_target(std::vector{scalar_transformer_kernels()},
                                      DRAFTPROOF_TARGETS_OF(transformer_kernels_of_target));
  for (std::size_t i = 0; i < sets.size(); ++i)
    if (const auto more = with_avxvnni(sets[i])) sets.push_back(*more);
  return sets;
}

const char* int8_instructions(const TransformerKernels& kernels) {
  if (kernels.int8_product == scalar_transformer_kernels().int8_product) return "scalar";
  if (kernels.int8_product == int8_product_avx512_vnni()) return "AVX-512 VNNI";
  if (kernels.int8_product == int8_product_wasm()) return "WebAssembly";
  return kernels.int8_product == int8_product_avxvnni() ? "AVX-VNNI" : "AVX2";
}

const TransformerKernels& transformer_kernels() {
  static const TransformerKernels chosen = [] {
    const TransformerKernels kernels = DRAFTPROOF_TARGETS_OF(transformer_kernels_of_target).front()();
    return with_avxvnni(kernels).value_or(kernels);
  }();
  return chosen;
}

}  // namespace draftproof
#endif
