// Kernels for every vector instruction set that was compiled and that this processor has. Included by files that
// Highway compiles once a target. Highway's headers alone are used: which sets a processor has is asked of the
// compiler's runtime here, and not of the library libhwy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hwy/highway.h"
#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace draftproof {

// Has this processor, and its system, all instructions of a target (HWY_AVX2)? Those are what Highway compiles it with.
inline bool has_target(std::int64_t target) {
  if ((target & HWY_ENABLED_BASELINE) != 0) return true;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  const bool ssse3 = __builtin_cpu_supports("ssse3");
  const bool sse4 = ssse3 && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                    __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  // clang-tidy 16 does not know the names "lzcnt" and "f16c".
  const auto has_bit = [](unsigned leaf, unsigned bit) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(leaf, &a, &b, &c, &d) != 0 && (c & bit) != 0;
  };
  const bool avx2 = sse4 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
                    has_bit(1, bit_F16C) && has_bit(0x80000001, bit_LZCNT);
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd");
  if (target == HWY_SSSE3) return ssse3;
  if (target == HWY_SSE4) return sse4;
  if (target == HWY_AVX2) return avx2;
  if (target == HWY_AVX3) return avx3;
#endif
  return false;
}

// The functions of one name that Highway compiled, each with its target, the best one first: those of the targets that
// this processor has, and the one that every processor has.
#define DRAFTPROOF_TARGETS_OF(FUNCTION)                                   \
  ::draftproof::usable_targets<decltype(&HWY_STATIC_DISPATCH(FUNCTION))>( \
      {HWY_CHOOSE_TARGET_LIST(FUNCTION), HWY_CHOOSE_FALLBACK(FUNCTION)})
template <class Function>
std::vector<Function> usable_targets(const std::vector<Function>& of_target) {
  // Places of the list are bits of HWY_TARGETS, from this one on.
  constexpr int kFirstBit = HWY_HIGHEST_TARGET_BIT + 1 - HWY_MAX_DYNAMIC_TARGETS;
  std::vector<Function> usable;
  for (std::size_t i = 0; i + 1 < of_target.size(); ++i)
    if (of_target[i] != nullptr && has_target(std::int64_t{1} << (kFirstBit + static_cast<int>(i))))
      usable.push_back(of_target[i]);
  usable.push_back(of_target.back());
  return usable;
}

// Adds to `found` the kernels of each target, as a function of `of_target` (DRAFTPROOF_TARGETS_OF) returns them with
// the name of their target; what has the name of one that is there already is left out.
template <class Kernels, class Function>
std::vector<Kernels> kernels_of_every_target(std::vector<Kernels> found, const std::vector<Function>& of_target) {
  for (const Function& function : of_target) {
    const Kernels kernels = function();
    if (std::none_of(found.begin(), found.end(),
                     [&](const Kernels& other) { return std::strcmp(other.target, kernels.target) == 0; }))
      found.push_back(kernels);
  }
  return found;
}

}  // namespace draftproof
