// Products of int8 rows with AVX2. Products of bytes are added in 16 bits, where 8 of a nibble and an int8 (at most
// 16 * 15 * 127 = 30480) fit; codes of a byte are taken as two nibbles, which share the broadcasts of activations.
//
// Intrinsics, since Highway 1.0.3 has no vpmaddubsw.
#include "engine/transformer/transformer_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

#include "engine/transformer/int8_product_256.hpp"

namespace draftproof {
namespace {

[[gnu::always_inline]] inline void add_products(__m256i& sum, __m256i codes, __m256i four, bool fresh) {
  const __m256i products = _mm256_maddubs_epi16(codes, four);
  sum = fresh ? products : _mm256_add_epi16(sum, products);
  fence(sum);
}

// Sums of products in 16 bits, two for each row of weights: of the low and of the high nibbles of parts [begin, end)
// with q + 4 (p - begin).
template <int kRows>
[[gnu::always_inline]] inline void nibble_sums(__m256i (&low)[kRows], __m256i (&high)[kRows], const std::byte* codes,
                                               int begin, int end, const std::int8_t* q) {
#pragma GCC unroll 8
  for (int p = begin; p < end; ++p) {
    const __m256i low_codes = nibbles<false>(codes, p);
    const __m256i high_codes = nibbles<true>(codes, p);
#pragma GCC unroll 8
    for (std::size_t m = 0; m < kRows; ++m) {
      const __m256i four = four_codes(q + m * kBlockBytes + 4 * (p - begin));
      add_products(low[m], low_codes, four, p == begin);
      add_products(high[m], high_codes, four, p == begin);
    }
  }
}

// The same of nibbles that stand for columns 16 apart, in one sum; or of those of one half of the columns.
template <int kRows, bool kLow, bool kHigh>
[[gnu::always_inline]] inline void nibble_sums(__m256i (&sum)[kRows], const std::byte* codes, const std::int8_t* q) {
#pragma GCC unroll 4
  for (int p = 0; p < 4; ++p) {
    if (kLow) {
      const __m256i low_codes = nibbles<false>(codes, p);
#pragma GCC unroll 8
      for (std::size_t m = 0; m < kRows; ++m)
        add_products(sum[m], low_codes, four_codes(q + m * kBlockBytes + 4 * p), p == 0);
    }
    if (kHigh) {
      const __m256i high_codes = nibbles<true>(codes, p);
#pragma GCC unroll 8
      for (std::size_t m = 0; m < kRows; ++m)
        add_products(sum[m], high_codes, four_codes(q + m * kBlockBytes + 16 + 4 * p), p == 0 && !kLow);
    }
  }
}

struct Dots {
  static constexpr int kRowsAtOnce = 4;

  template <PackedLayout kLayout, int kRows>
  [[gnu::always_inline]] static void of(__m256i (&dot)[kRows], const std::byte* codes, const std::int8_t* q, int half) {
    const __m256i ones = _mm256_set1_epi16(1);
    if constexpr (kLayout.code_bits == 4) {
      __m256i products[kRows];
      if constexpr (!kLayout.halves) {
        nibble_sums<kRows, true, true>(products, codes, q);
      } else if (half == 0) {
        nibble_sums<kRows, true, false>(products, codes, q);
      } else {
        nibble_sums<kRows, false, true>(products, codes, q);
      }
#pragma GCC unroll 8
      for (std::size_t m = 0; m < kRows; ++m) dot[m] = _mm256_madd_epi16(products[m], ones);
    } else {
      const int begin = kLayout.halves ? half * 4 : 0;
      const int end = kLayout.halves ? half * 4 + 4 : 8;
      __m256i low[kRows], high[kRows];
      nibble_sums<kRows>(low, high, codes, begin, end, q + begin * 4);
#pragma GCC unroll 8
      for (std::size_t m = 0; m < kRows; ++m)
        dot[m] = _mm256_add_epi32(_mm256_madd_epi16(low[m], ones), _mm256_madd_epi16(high[m], _mm256_set1_epi16(16)));
    }
  }
};

}  // namespace
}  // namespace draftproof

#pragma GCC pop_options

namespace draftproof {

Int8Product int8_product_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? int8_product<Dots> : nullptr;
}

}  // namespace draftproof

#else

namespace draftproof {

Int8Product int8_product_avx2() {
  return nullptr;
}

}  // namespace draftproof

#endif
