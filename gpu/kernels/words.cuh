// Rows as 32-bit words of elements: one float, or two elements of 16 bits, which GPUs compare at once.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/kernels/elements.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

template <class Element>
inline constexpr int kPerWord = 4 / static_cast<int>(sizeof(Element));

template <class Element>
__device__ inline float element_of_word(std::uint32_t word, int index);
template <>
__device__ inline float element_of_word<float>(std::uint32_t word, int) {
  return bit_cast<float>(word);
}
template <>
__device__ inline float element_of_word<BFloat16>(std::uint32_t word, int index) {
  return bit_cast<float>(index == 0 ? word << 16 : word & 0xffff0000u);
}
template <>
__device__ inline float element_of_word<Float16>(std::uint32_t word, int index) {
  const auto half = static_cast<std::uint16_t>(index == 0 ? word : word >> 16);
#if defined(__CUDA_ARCH__)
  float x;  // the bits of f16_to_f32 but for NaN
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
  return x;
#else
  return to_float(Float16{half});
#endif
}

// The larger or smaller of each pair of elements; NaN where either is NaN.
#if defined(__CUDA_ARCH__)
#define DRAFTPROOF_COMPARE_WORDS(name, instruction)                            \
  template <class Element>                                                     \
  __device__ inline std::uint32_t name(std::uint32_t a, std::uint32_t b) {     \
    std::uint32_t out;                                                         \
    if constexpr (std::is_same_v<Element, float>)                              \
      asm(instruction ".NaN.f32 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));    \
    else if constexpr (std::is_same_v<Element, BFloat16>)                      \
      asm(instruction ".NaN.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b)); \
    else                                                                       \
      asm(instruction ".NaN.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));  \
    return out;                                                                \
  }
DRAFTPROOF_COMPARE_WORDS(max_of_words, "max")
DRAFTPROOF_COMPARE_WORDS(min_of_words, "min")
#undef DRAFTPROOF_COMPARE_WORDS
#else
template <class Element>
__device__ inline std::uint32_t chosen_words(std::uint32_t a, std::uint32_t b, bool larger) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(Element));
  constexpr std::uint32_t kMask = 0xffffffffu >> (32 - kBits);
  std::uint32_t out = 0;
  for (int i = 0; i < kPerWord<Element>; ++i) {
    const float x = element_of_word<Element>(a, i);
    const float y = element_of_word<Element>(b, i);
    const bool takes_a = x != x || (y == y && (larger ? x > y : x < y));
    out |= (takes_a ? a : b) & kMask << (i * kBits);
  }
  return out;
}
template <class Element>
__device__ inline std::uint32_t max_of_words(std::uint32_t a, std::uint32_t b) {
  return chosen_words<Element>(a, b, true);
}
template <class Element>
__device__ inline std::uint32_t min_of_words(std::uint32_t a, std::uint32_t b) {
  return chosen_words<Element>(a, b, false);
}
#endif

// x in every element of a word, rounded to their type; x is within it.
template <class Element>
__device__ inline std::uint32_t word_of(float x) {
  if constexpr (std::is_same_v<Element, float>) {
    return bit_cast<std::uint32_t>(x);
  } else if constexpr (std::is_same_v<Element, BFloat16>) {
    const std::uint32_t half = (bit_cast<std::uint32_t>(x) + 0x8000u) >> 16;
    return half << 16 | half;
  } else {
    // Towards zero, to 0 below the normal numbers.
    const std::uint32_t bits = bit_cast<std::uint32_t>(x);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    std::uint32_t half = magnitude >= 113u << 23 ? (magnitude - (112u << 23)) >> 13 : 0;
    if (magnitude >= 0x7f800000u) half = 0x7c00u;
    half |= (bits >> 31) << 15;
    return half << 16 | half;
  }
}

// A thread's share of kThreads * kWords words from `at` on, which lies at a multiple of 16 bytes: four words after one
// another at a time.
template <class Element, int kThreads, int kWords>
__device__ inline void load_words(Global<const Element> data, std::int64_t at, std::uint32_t (&out)[kWords]) {
  struct Words {
    std::uint32_t word[4];
  };
  const auto quads = view_as<const Vector<Element>>(data + at) + threadIdx.x;
  DRAFTPROOF_UNROLL
  for (int v = 0; v < kWords / 4; ++v) {
    const Vector<Element> loaded = quads[v * kThreads];
    const Words words = bit_cast<Words>(loaded);
    DRAFTPROOF_UNROLL
    for (int w = 0; w < 4; ++w) out[v * 4 + w] = words.word[w];
  }
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
