// Products of int8 rows with AVX-VNNI, which processors with AVX2 and without AVX-512 have: four products of bytes are
// added in 32 bits at once.
//
// Intrinsics, since Highway 1.0.3 does not know the instruction set.
#include "engine/transformer/transformer_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,avxvnni,fma,f16c")

#include "engine/transformer/int8_product_256.hpp"

namespace draftproof {
namespace {

[[gnu::always_inline]] inline void add_dots(__m256i& dot, __m256i codes, __m256i four, bool fresh) {
  dot = _mm256_dpbusd_avx_epi32(fresh ? _mm256_setzero_si256() : dot, codes, four);
  fence(dot);
}

struct Dots {
  static constexpr int kRowsAtOnce = 4;

  template <PackedLayout kLayout, int kRows>
  [[gnu::always_inline]] static void of(__m256i (&dot)[kRows], const std::byte* codes, const std::int8_t* q, int half) {
    const auto add = [&](__m256i part, const std::int8_t* at, bool fresh) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (std::size_t m = 0; m < kRows; ++m) add_dots(dot[m], part, four_codes(at + m * kBlockBytes), fresh);
    };
    if constexpr (kLayout.code_bits == 4) {
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) {
        if (!kLayout.halves || half == 0) add(nibbles<false>(codes, p), q + 4 * p, p == 0);
        if (!kLayout.halves || half == 1) add(nibbles<true>(codes, p), q + 16 + 4 * p, p == 0 && kLayout.halves);
      }
    } else {
      const int begin = half * 4;
#pragma GCC unroll 8
      for (int p = begin; p < (kLayout.halves ? begin + 4 : 8); ++p)
        add(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + p * 64)), q + 4 * p, p == begin);
    }
  }
};

}  // namespace
}  // namespace draftproof

#pragma GCC pop_options

namespace draftproof {

Int8Product int8_product_avxvnni() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("avxvnni")
             ? int8_product<Dots>
             : nullptr;
}

}  // namespace draftproof

#else

namespace draftproof {

Int8Product int8_product_avxvnni() {
  return nullptr;
}

}  // namespace draftproof

#endif
